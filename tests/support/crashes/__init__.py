"""States of a disk after a crash, and the operations that a crash interrupts."""
