"""stub"""
from tahoe.protocol.actions import Protocol
def readers_of(protocol: Protocol) -> tuple[str, ...]:
    return ()
