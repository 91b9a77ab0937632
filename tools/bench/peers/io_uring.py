"""Whether the kernel offers FUSE over io_uring. The setting is only read, never changed."""

SETTING = "/sys/module/fuse/parameters/enable_uring"


def not_offered():
    """Returns why a file system cannot get its requests through io_uring, or None if it can."""
    try:
        with open(SETTING, encoding="ascii") as file:
            value = file.read().strip()
    except OSError:
        return "this kernel has no FUSE over io_uring"
    return None if value == "Y" else "FUSE over io_uring is switched off (enable_uring of the module fuse is not Y)"
