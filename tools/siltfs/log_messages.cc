// Warnings of commands, and the messages in the daemon's log.
#include <array>

#include "tools/siltfs/message_table.h"

namespace siltfs {
namespace {

constexpr std::string_view kNothing = "nothing needs to be done";
constexpr std::string_view kScrub = "run siltfs scrub, which names all damaged files";
constexpr std::string_view kHeal = "write the same content again, for example from a backup";
constexpr std::string_view kSpace = "free space on the disk; the daemon tries again by itself";

constexpr std::array kRows = {
    MessageRow{"S0901", "is more than this machine's memory of", "The index may take all memory.",
               "give a smaller size"},
    MessageRow{"S0902", "that the index takes in any case",
               "The index takes more than it was given.",
               "give a larger size, or ignore the warning"},
    MessageRow{"S0903", "; this user can replace the", "Another user owns the store's place.",
               "make the store in a directory that belongs to root"},
    MessageRow{"S0904", "are kept for deleting files when it is full; a store needs",
               "The disk is small, and the reserve takes much of it.", "use a larger disk"},

    MessageRow{"S1001", ": mounted on * (siltfs ", "The mount answers.", kNothing},
    MessageRow{"S1002", ": closed, everything is durable", "The store was unmounted.", kNothing},
    MessageRow{"S1003", ": unmounted; mounts of snapshots are still served",
               "The live files were unmounted; the store stays open.",
               "unmount the snapshots to close the store"},
    MessageRow{"S1004", ": snapshot \"*\" is mounted on", "A snapshot was mounted.", kNothing},
    MessageRow{"S1005", "\" is no longer mounted on", "A snapshot was unmounted.", kNothing},
    MessageRow{"S1006", "is ignored because only the superuser may use it",
               "Another user than root made the mount.", "leave the option out"},
    MessageRow{"S1007", "requests come through /dev/fuse, not through io_uring",
               "FUSE over io_uring is not available.",
               "see FUSE over io_uring in docs/performance.md, or mount with io_uring=off"},
    MessageRow{"S1008", "; the mount ends", "The connection to the kernel failed.",
               "mount the store again"},
    MessageRow{"S1009", "; programs that use the mount lose access to it",
               "The daemon was told to end while files were open.",
               "unmount with siltfs umount, which refuses while files are open"},
    MessageRow{"S1010", "the kernel may show an old state of inode", "A notification failed.",
               "open the file again, or mount the store again"},
    MessageRow{"S1011", "the kernel may show old attributes of inode", "A notification failed.",
               "open the file again, or mount the store again"},
    MessageRow{"S1012", "programs may see old sizes of files that they do not open",
               "Names could not be read after a rollback.", "mount the store again"},

    MessageRow{"S1101", "bytes cannot be read, the first at offset",
               "A scrub found a damaged file.", kHeal},
    MessageRow{"S1102", "more files have damage in them", "A scrub found many damaged files.",
               kScrub},
    MessageRow{"S1103", "there is more damage; this scrub only counts it from here on",
               "A scrub found much damage.", "replace the disk, and restore a copy of the store"},
    MessageRow{"S1104", "do not match its name or tag", "A chunk's bytes have changed.", kScrub},
    MessageRow{"S1105", "doesn't decompress", "A block's bytes have changed.", kScrub},
    MessageRow{"S1106", "wrong checksum", "Bytes on the disk have changed.", kScrub},
    MessageRow{"S1107", "are damaged: ", "Bytes of a segment have changed.", kScrub},
    MessageRow{"S1108", "the segment is missing, and * chunks with it",
               "A segment's file was lost.",
               "restore the file from a copy of the store, or run siltfs scrub and then fsck -y"},
    MessageRow{"S1109", "no block of the segment is whole", "All of a segment's file has changed.",
               kScrub},
    MessageRow{"S1110", "there is no whole slot in the sync ledger",
               "The file meta.ledger was lost.", "run siltfs fsck after an unmount"},
    MessageRow{"S1111", "a slot of the sync ledger is damaged", "The file meta.ledger has changed.",
               kNothing},
    MessageRow{"S1112", "the metadata store says: ", "The metadata engine reports a failure.",
               "unmount the store and run siltfs fsck"},
    MessageRow{"S1113", "the recipe ends before offset", "A file's recipe is too short.",
               "unmount the store and run siltfs fsck"},

    MessageRow{"S1201", "the chunk index cannot be used and is rebuilt from the segments",
               "The index was lost or is damaged.", "wait; the daemon rebuilds it by itself"},
    MessageRow{"S1202", "the segments are read instead of the chunk index",
               "The index cannot be used, and the mount is read-only.",
               "mount the store for writing"},
    MessageRow{"S1203", "the mount waits for the rebuild of the chunk index",
               "The index was lost, and so was the segment guide.", "wait"},
    MessageRow{"S1204", "the chunk index could not be rebuilt", "The rebuild has failed.",
               "remove the cause that the message names, and mount the store again"},
    MessageRow{"S1205", "the index did not know * chunks that are in use",
               "The index had lost entries.", kNothing},
    MessageRow{"S1206", "the segment guide was not made", "The guide is missing.",
               "mount the store, which makes it in the background"},
    MessageRow{"S1207", "more deltas are made until the next mount",
               "Super-features cannot be used.", "mount the store again"},
    MessageRow{"S1208", "no deltas are made: ", "Super-features cannot be used.",
               "remove the cause that the message names, and mount the store again"},
    MessageRow{"S1209", "is not recompressed: ", "A segment stays as it is.", kScrub},
    MessageRow{"S1210", "dead chunks were not collected", "Garbage collection has failed.", kSpace},
    MessageRow{"S1211", "is removed at the next mount", "A segment's file could not be removed.",
               kNothing},
    MessageRow{"S1212", "the dead chunks of segment * stay", "A segment was not collected.",
               kScrub},
    MessageRow{"S1213", " was not folded: ", "A file's changes stay in metadata.", kSpace},
    MessageRow{"S1214", "the removal of the snapshot \"*\" failed and will be tried again",
               "A deleted snapshot still takes space.", kSpace},
    MessageRow{"S1215", "the restore of received snapshots failed and will be tried again",
               "A transfer cannot be continued yet.", kSpace},
};

}  // namespace

std::span<const MessageRow> LogMessages() { return kRows; }

}  // namespace siltfs
