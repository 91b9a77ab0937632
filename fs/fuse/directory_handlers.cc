// Handlers of requests about the contents of directories.
//
// A listing is stateless: each request has the cookie after which to continue. There is nothing to
// open, so OPENDIR is declined. After that, the kernel opens directories without a request, and
// caches the listing of a directory until it sends a request that changes the directory.
#include <memory>
#include <string>
#include <vector>

#include "fs/fuse/attribute_translation.h"
#include "fs/fuse/handler_context.h"

namespace siltfs::fuse {
namespace {

// Limit of a reply, even if the request asks for more.
constexpr size_t kMaxListingBytes = 128 << 10;

// The bytes of a reply, entry after entry.
class Listing {
 public:
  Listing(fuse_req_t request, size_t size)
      : request_(request),
        size_(std::min(size, kMaxListingBytes)),
        buffer_(new char[size_]) {}  // not zeroed

  bool Fits(const std::string& name, bool with_attributes) const {
    const size_t need = with_attributes
                            ? fuse_add_direntry_plus(request_, nullptr, 0, name.c_str(), nullptr, 0)
                            : fuse_add_direntry(request_, nullptr, 0, name.c_str(), nullptr, 0);
    return need <= size_ - used_;
  }
  // The caller has checked Fits.
  void Add(const std::string& name, const struct stat& stat, uint64_t cookie) {
    used_ += fuse_add_direntry(request_, Place(), Room(), name.c_str(), &stat,
                               static_cast<off_t>(cookie));
  }
  void AddWithAttributes(const std::string& name, const fuse_entry_param& entry, uint64_t cookie) {
    used_ += fuse_add_direntry_plus(request_, Place(), Room(), name.c_str(), &entry,
                                    static_cast<off_t>(cookie));
  }
  // False if the reply did not arrive.
  bool Reply() { return fuse_reply_buf(request_, buffer_.get(), used_) == 0; }

 private:
  char* Place() { return buffer_.get() + used_; }
  size_t Room() const { return size_ - used_; }

  fuse_req_t request_;
  const size_t size_;
  const std::unique_ptr<char[]> buffer_;
  size_t used_ = 0;
};

struct stat StatOf(InodeNumber inode, uint32_t type) {
  struct stat stat = {};
  stat.st_ino = inode;
  stat.st_mode = type;
  return stat;
}

void ReadDirectory(fuse_req_t request, fuse_ino_t directory, size_t size, off_t cookie,
                   fuse_file_info* /*file*/) {
  Listing listing(request, size);
  const Status status = FileSystemOf(request).ReadDirectory(
      directory, static_cast<uint64_t>(cookie), [&](const DirectoryRecord& record) {
        const std::string name(record.name);
        if (!listing.Fits(name, /*with_attributes=*/false)) return false;
        listing.Add(name, StatOf(record.inode, record.mode), record.cookie);
        return true;
      });
  if (!status.ok()) return ReplyError(request, status);
  listing.Reply();
}

struct Record {
  std::string name;
  InodeNumber inode;
  uint32_t type;
  uint64_t cookie;
};

// Returns the records after `cookie`: as many as fit a reply of `size` bytes with their attributes.
Result<std::vector<Record>> CollectRecords(fuse_req_t request, InodeNumber directory,
                                           uint64_t cookie, size_t size) {
  std::vector<Record> records;
  size_t used = 0;
  const size_t room = std::min(size, kMaxListingBytes);
  SILTFS_RETURN_IF_ERROR(
      FileSystemOf(request).ReadDirectory(directory, cookie, [&](const DirectoryRecord& record) {
        Record kept{std::string(record.name), record.inode, record.mode, record.cookie};
        used += fuse_add_direntry_plus(request, nullptr, 0, kept.name.c_str(), nullptr, 0);
        if (used > room) return false;
        records.push_back(std::move(kept));
        return true;
      }));
  return records;
}

// The names are collected first and the inodes looked up afterwards, so that no lookup runs inside
// ReadDirectory's visit. They are looked up by number, which is faster than by name. A program
// cannot remove a name in between, because the kernel locks the directory until it has the reply.
// An import can. But then the kernel forgets the name again: FuseBinding::ForgetName waits for this
// lock. The kernel counts each entry with attributes as a lookup if it gets the reply. "." and ".."
// have no attributes here and never count.
void ReadDirectoryPlus(fuse_req_t request, fuse_ino_t directory, size_t size, off_t cookie,
                       fuse_file_info* /*file*/) {
  FileSystem& file_system = FileSystemOf(request);
  const auto records = CollectRecords(request, directory, static_cast<uint64_t>(cookie), size);
  if (!records.ok()) return ReplyError(request, records.status());

  Listing listing(request, size);
  std::vector<InodeNumber> counted;
  for (const Record& record : *records) {
    fuse_entry_param entry = {};  // node 0: a name without attributes
    entry.attr = StatOf(record.inode, record.type);
    if (record.name != "." && record.name != "..") {
      const Result<Attributes> found = LookUpToTell(request, record.inode, ".");
      if (found.ok()) {
        entry = ToEntry(AttributesToReply(ContextOf(request), *found));
        counted.push_back(found->inode);
      } else if (found.status().Is(StatusCode::kNotFound) ||
                 found.status().Is(StatusCode::kStale)) {
        continue;  // removed since the names were collected
      }            // else: listed without attributes; a lookup of the name reports the error
    }
    listing.AddWithAttributes(record.name, entry, record.cookie);
  }
  if (!listing.Reply()) {
    for (const InodeNumber inode : counted) file_system.Forget(inode, 1);
  }
}

void OpenDirectory(fuse_req_t request, fuse_ino_t /*directory*/, fuse_file_info* file) {
  if (ContextOf(request).opendir_may_be_declined) {
    fuse_reply_err(request, ENOSYS);
    return;
  }
  file->cache_readdir = 1;
  file->keep_cache = 1;
  fuse_reply_open(request, file);
}

void SyncDirectory(fuse_req_t request, fuse_ino_t directory, int /*data_only*/,
                   fuse_file_info* /*file*/) {
  ReplyOutcome(request, FileSystemOf(request).Fsync(directory));
}

}  // namespace

void AddDirectoryHandlers(fuse_lowlevel_ops& operations) {
  operations.opendir = OpenDirectory;
  operations.readdir = ReadDirectory;
  operations.readdirplus = ReadDirectoryPlus;
  operations.fsyncdir = SyncDirectory;
}

}  // namespace siltfs::fuse
