"""An ONNX model whose weights are kept as int8, made to multiply in int8 too.

Such a model is small on the disk, yet turns its weights back to float32 when it is loaded. Where
the processor multiplies int8 by itself (VNNI, dot products), quantizing the other side of each
product as well, with one scale a call, halves a chunk's time; elsewhere it would be slower.
"""

import platform
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

_INT8, _FLOAT = 3, 1  # TensorProto.DataType


def multiplies_int8() -> bool:
    """Whether this processor has instructions for products of int8."""
    if platform.machine().lower() in ("arm64", "aarch64"):
        return True
    try:
        flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        return False
    return not flags.isdisjoint(("avx512_vnni", "avx_vnni"))


def with_int8_products(model: bytes) -> bytes:
    """The model with every ``x @ (float(int8 weight) * column scale)`` computed on int8.

    A model without such products comes back as it was.

    Args:
        model: A serialized ONNX ModelProto.
    """
    parsed = _schema()()
    parsed.ParseFromString(model)
    graph = parsed.graph
    made_by = {output: node for node in graph.node for output in node.output}
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    nodes, quantized = [], set[str]()
    for node in graph.node:
        found = _weight(node, made_by, tensors) if node.op_type == "MatMul" else None
        if found is None:
            nodes.append(node)
            continue
        for new in _product(node, *found):
            if new.output[0] not in quantized:  # one input of several products
                nodes.append(new)
                quantized.add(new.output[0])
    if not quantized:
        return model
    copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    return bytes(parsed.SerializeToString())


def _weight(
    product: Any, made_by: dict[str, Any], tensors: dict[str, Any]
) -> tuple[str, str] | None:
    """Names of the int8 matrix and of its scales, a row, that a product's right side is made of."""
    scaled = made_by.get(product.input[1])
    if scaled is None or scaled.op_type != "Mul":
        return None
    cast = made_by.get(scaled.input[0])
    if cast is None or cast.op_type != "Cast":
        return None
    matrix, scales = tensors.get(cast.input[0]), tensors.get(scaled.input[1])
    if matrix is None or scales is None or matrix.data_type != _INT8 or len(matrix.dims) != 2:
        return None
    return (matrix.name, scales.name) if list(scales.dims) == [1, matrix.dims[1]] else None


def _product(node: Any, matrix: str, scales: str) -> Iterator[Any]:
    make, x, y = type(node), node.input[0], node.output[0]
    yield make(
        op_type="DynamicQuantizeLinear",
        input=[x],
        output=[f"{x}_int8", f"{x}_int8_scale", f"{x}_int8_zero"],
    )
    yield make(
        op_type="MatMulInteger",
        input=[f"{x}_int8", matrix, f"{x}_int8_zero"],
        output=[f"{y}_int32"],
    )
    cast = make(op_type="Cast", input=[f"{y}_int32"], output=[f"{y}_float"])
    cast.attribute.add(name="to", i=_FLOAT, type=2)
    yield cast
    yield make(op_type="Mul", input=[f"{x}_int8_scale", scales], output=[f"{y}_scale"])
    yield make(op_type="Mul", input=[f"{y}_float", f"{y}_scale"], output=[y])


@cache
def _schema() -> Any:
    """ModelProto with the fields that are needed here; protobuf passes on all the others."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    messages = {
        "Model": (("graph", 7, "Graph", False),),
        "Graph": (("node", 1, "Node", True), ("initializer", 5, "Tensor", True)),
        "Node": (
            ("input", 1, "string", True),
            ("output", 2, "string", True),
            ("op_type", 4, "string", False),
            ("attribute", 5, "Attribute", True),
        ),
        "Attribute": (
            ("name", 1, "string", False),
            ("i", 3, "int64", False),
            ("type", 20, "int64", False),
        ),
        "Tensor": (
            ("dims", 1, "int64", True),
            ("data_type", 2, "int64", False),
            ("name", 8, "string", False),
        ),
    }
    file = descriptor_pb2.FileDescriptorProto(
        name="gistree/onnx.proto", package="gistree.onnx", syntax="proto2"
    )
    field = descriptor_pb2.FieldDescriptorProto
    scalars = {"string": field.TYPE_STRING, "int64": field.TYPE_INT64}
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for label, number, kind, repeated in fields:
            message.field.add(
                name=label,
                number=number,
                label=field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL,
                type=scalars.get(kind, field.TYPE_MESSAGE),
                type_name=None if kind in scalars else f".gistree.onnx.{kind}",
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("gistree.onnx.Model"))
