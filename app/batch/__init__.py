"""Many questions over many documents: durable row by row, resumable, accounted for."""
