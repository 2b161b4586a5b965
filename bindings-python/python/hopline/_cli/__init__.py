"""The command `hopline`. Nothing but the command imports this folder."""
