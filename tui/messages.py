"""The messages that the runner's thread posts to the app; what they announce waits, in order, in the runner."""

from __future__ import annotations

from textual.message import Message


class DeliveriesWaiting(Message, bubble=False):
    """The runner has deliveries to take. Several of these say no more than one."""

    def can_replace(self, message: Message) -> bool:
        """A later wake-up makes an earlier one needless: nothing is in it."""
        return isinstance(message, DeliveriesWaiting)
