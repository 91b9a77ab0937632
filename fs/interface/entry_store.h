// Puts whole directory entries into the file system: inode, attributes, content and name in one
// operation. A copy of a tree needs one such call for a small file, instead of a call for each
// step.
//
// Thread-safety: every call from any thread. Ownership: belongs to the FileSystem
// (FileSystem::entries). It borrows the arguments during a call only. Errors: those of FileSystem;
// kInvalidArgument for an image that contradicts itself, whatever values it has. The kernel does
// not check permissions for these calls, so the caller must do it. Durability: that of operations
// (file_system.h). After a crash an entry is there as a whole or not at all; a replaced entry is
// then the old one or the new one.
//
// No call changes lookup counts, and no call tells the kernel what has changed. The caller must
// tell it if the kernel may cache the old state (MayBeCached).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fs/interface/file_system.h"
#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs {

// What identifies the state of a source file, independent of its device. If a file has the same
// facts at the next import, its content and attributes are the same.
struct SourceFacts {
  uint64_t inode = 0;
  int64_t ctime = 0;  // nanoseconds since 1970
  uint64_t size = 0;  // bytes
  int64_t mtime = 0;
  bool operator==(const SourceFacts&) const = default;
};

struct XattrImage {
  std::string_view name;
  std::string_view value;
};

// Bytes of a file at an offset.
struct ExtentImage {
  uint64_t offset = 0;
  ByteView bytes;
};

// Everything that an entry has after the call.
struct EntryImage {
  InodeNumber parent = 0;
  std::string_view name = {};
  uint32_t mode = 0;  // type and permission bits, as st_mode
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t device = 0;  // of device nodes
  uint64_t size = 0;    // of regular files
  int64_t atime = 0;
  int64_t mtime = 0;
  std::string_view target = {};  // of symbolic links
  // In the namespaces of xattr(7), access control lists included; each name once.
  std::span<const XattrImage> xattrs = {};
  // The data of a regular file, in ascending order and without overlaps; holes are left out.
  std::span<const ExtentImage> extents = {};
  // Kept with a regular file, for Offer. Programs neither see nor change them.
  std::optional<SourceFacts> source = std::nullopt;
};

enum class PutEffect : uint8_t {
  kUnchanged,  // the entry was there, with the same attributes and content
  kMade,
  kReplaced,  // the name belonged to another inode, which is not a directory
  kNeeded,    // Offer only: nothing was done, because the content is not known
};

struct PutOutcome {
  PutEffect effect = PutEffect::kUnchanged;
  InodeNumber inode = 0;     // 0 for kNeeded
  InodeNumber replaced = 0;  // for kReplaced
};

// What a clone has copied.
struct CloneTotals {
  uint64_t files = 0;  // inodes that are not directories
  uint64_t directories = 0;
  uint64_t logical_bytes = 0;  // sizes of regular files, less holes
};

// An inode that a clone is about to copy.
struct ClonedInode {
  uint32_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
};

// The tree below `source`, or the file `source`, becomes `name` in the directory `parent`. Each of
// the functions may be empty. An error that a function returns ends the clone. They are called
// while no lock is held.
struct CloneRequest {
  InodeNumber source = 0;
  InodeNumber parent = 0;
  std::string_view name = {};
  std::function<Status(const ClonedInode& inode)> admit = {};
  std::function<Status(std::string_view name)> admit_xattr = {};
  // Called now and then, with what was copied so far.
  std::function<Status(const CloneTotals& totals)> on_progress = {};
  // The number of files with several names that are known in memory at a time.
  size_t most_links = 1u << 18;
  // The bytes of records that are collected in memory before they are written.
  size_t batch_bytes = 8u << 20;
  // The number of directories that were found and not read yet. The clone reads breadth first if
  // there are not more.
  size_t most_directories = 1u << 17;
};

struct CloneOutcome {
  InodeNumber inode = 0;
  CloneTotals totals;
};

class EntryStore {
 public:
  virtual ~EntryStore() = default;

  // Puts entries of any type but directories. Each entry is an operation of its own; an error
  // concerns its entry only. kIsADirectory if the name belongs to a directory. The chunks of all
  // entries are named and looked up together.
  virtual std::vector<Result<PutOutcome>> Put(std::span<const EntryImage> images) = 0;
  // Puts a regular file, if its content is known without the source:
  // - the entry exists, has these attributes, and was put with the same SourceFacts (an entry of
  //   another type has these attributes and no extended attributes); or
  // - the file of this name in `reference` (0: none) was put with the same SourceFacts, and neither
  //   its content nor its attributes were changed since. The new file then shares its recipe, and
  //   gets its extended attributes.
  // The image has no extents and no extended attributes. kNeeded otherwise. `probably_new` saves
  // the search for the entry: if it exists, it is replaced or kNeeded.
  virtual Result<PutOutcome> Offer(const EntryImage& image, InodeNumber reference,
                                   bool probably_new) = 0;
  // Gives a temporary file (FileSystem::MakeTemporaryFile) its attributes and its name. The file
  // must be open and have the image's size; extents are ignored.
  virtual Result<PutOutcome> Place(InodeNumber temporary, const EntryImage& image) = 0;
  // Adds a name to a file that has a name already, or replaces what has the new name. Unlike
  // FileSystem::Link it keeps the file's ctime, which Offer compares.
  virtual Result<PutOutcome> Link(InodeNumber inode, InodeNumber parent, std::string_view name) = 0;
  // Gives a directory the attributes and extended attributes of the image, and removes its other
  // extended attributes. Returns whether anything has changed.
  virtual Result<bool> SetDirectory(InodeNumber directory, const EntryImage& image) = 0;
  // Copies a file or a tree without reading or writing chunks: recipes are shared, and each copy
  // may then be changed by itself. The copy has the state of the source at one moment during the
  // call, which includes all operations that ended before the call. It appears as a whole: any
  // reader, and the state after a crash, has either nothing or all of it. It keeps all attributes
  // but the ctime, and the hard links within the tree. kAlreadyExists if the name is taken,
  // kInvalidArgument if `parent` lies in the source. A call that fails leaves nothing. Memory does
  // not depend on the size of the tree.
  virtual Result<CloneOutcome> Clone(const CloneRequest& request) = 0;
  // Whether the kernel may have cached attributes, names or listings of this inode: its lookup
  // count is not 0. An inode that the kernel does not know now, it first sees in its newest state.
  virtual bool MayBeCached(InodeNumber inode) const = 0;
};

}  // namespace siltfs
