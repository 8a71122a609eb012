"""A drop-in proxy for the providers' APIs that records the calls of agents. Runs as a separate process.

Requests and responses pass through unchanged. A call is recorded after its last byte, so that the agent never
waits for the store.
"""
