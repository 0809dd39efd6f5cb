"""Two nodes of Ray's; the second one is lost when a line comes in, and all ends with another."""

import sys

from ray.cluster_utils import Cluster

head = {
    "num_cpus": 1,
    "include_dashboard": False,
    "_system_config": {  # it looks for dead nodes more often
        "health_check_initial_delay_ms": 0,
        "health_check_period_ms": 500,
        "health_check_timeout_ms": 2_000,
        "health_check_failure_threshold": 3,
    },
}
cluster = Cluster(initialize_head=True, head_node_args=head)
try:
    node = cluster.add_node(num_cpus=1)
    sys.stdout.write(f"{cluster.address}\n")
    sys.stdout.flush()
    if sys.stdin.readline():
        cluster.remove_node(node, allow_graceful=False)
    sys.stdin.readline()
finally:
    cluster.shutdown()
