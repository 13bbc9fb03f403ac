"""What the commands share: arguments, flags, printed output, and the words of messages in a shell."""
