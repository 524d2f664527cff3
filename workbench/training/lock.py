"""A lock on a run's folder, so that only one training at a time writes to it."""

import os
from contextlib import suppress
from pathlib import Path

from workbench.settings.config import ConfigError

try:
    import fcntl
except ImportError:  # Windows has no such lock, so a second training goes unnoticed there
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"


class RunLock:
    """Exclusive lock on a run's folder, which the operating system frees when the process ends.

    Because a killed process loses it, no stale lock is ever left behind. On a file system without
    locks, the folder is not protected.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self.folder = folder
        self.descriptor: int | None = None

    def take(self) -> None:
        """Take the lock.

        Raises:
            ConfigError: Another training holds it.
        """
        while fcntl is not None and self.descriptor is None:
            try:
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                raise ConfigError(f"{self.folder} cannot be written ({error.strerror})") from None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(descriptor, 20).decode(errors="replace").strip() or "unknown"
                os.close(descriptor)
                raise ConfigError(
                    f"another training writes {self.folder} (process {holder}); wait for it, stop "
                    "it, or choose another --out"
                ) from None
            except OSError:  # a file system without locks
                os.close(descriptor)
                return
            if not self._is_current(descriptor):  # its holder deleted the file in the meantime
                os.close(descriptor)
                continue
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
            self.descriptor = descriptor

    def drop(self) -> None:
        """Release the lock, if it was taken."""
        if self.descriptor is None:
            return
        with suppress(OSError):
            self.path.unlink()
        os.close(self.descriptor)
        self.descriptor = None

    def _is_current(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.stat())
        except FileNotFoundError:
            return False
