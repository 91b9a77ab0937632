#include "tests/posix/tree_digest.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <vector>

#include "store/base/bytes.h"

namespace siltfs::testing {
namespace {

class Digest {
 public:
  void Add(std::string_view text) {  // FNV-1a
    AddNumber(text.size());
    for (const char character : text) AddByte(static_cast<uint8_t>(character));
  }
  void AddNumber(uint64_t number) {
    for (int i = 0; i < 8; ++i, number >>= 8) AddByte(static_cast<uint8_t>(number));
  }
  uint64_t value() const { return value_; }

 private:
  void AddByte(uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3; }

  uint64_t value_ = 0xcbf29ce484222325;
};

struct Entry {
  std::string name;
  ino_t inode;
  unsigned char type;
};

class TreeWalk {
 public:
  explicit TreeWalk(bool fresh) : fresh_(fresh) {}
  TreeDigest Run(const std::string& root) {
    struct stat stat = {};
    if (lstat(root.c_str(), &stat) != 0) throw UnsoundTree("there is no " + root);
    VisitDirectory(root, "", stat);
    for (const auto& [inode, names] : names_) {
      if (names.found != names.expected) {
        Complain(names.one, "has " + std::to_string(names.expected) + " links and " +
                                std::to_string(names.found) + " names");
      }
    }
    if (!complaints_.empty()) throw UnsoundTree("the tree is unsound:" + complaints_);
    return result_;
  }

 private:
  struct Names {
    std::string one;
    uint64_t expected = 0;
    uint64_t found = 0;
  };

  void Complain(const std::string& path, const std::string& what) {
    complaints_ += "\n  /" + path + " " + what;
  }
  void ComplainOfCall(const std::string& path, const std::string& call) {
    Complain(path, call + ": " + std::strerror(errno));
  }

  std::vector<Entry> List(const std::string& absolute, const std::string& path) {
    std::vector<Entry> entries;
    DIR* stream = opendir(absolute.c_str());
    if (stream == nullptr) {
      ComplainOfCall(path, "opendir");
      return entries;
    }
    errno = 0;
    while (const dirent* entry = readdir(stream)) {
      if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
      entries.push_back({entry->d_name, entry->d_ino, entry->d_type});
    }
    if (errno != 0) ComplainOfCall(path, "readdir");
    closedir(stream);
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.name < b.name; });
    for (size_t i = 1; i < entries.size(); ++i) {
      if (entries[i].name == entries[i - 1].name) Complain(path, "lists twice " + entries[i].name);
    }
    return entries;
  }

  void VisitDirectory(const std::string& absolute, const std::string& path,
                      const struct stat& stat) {
    uint64_t subdirectories = 0;
    for (const Entry& entry : List(absolute, path)) {
      const std::string below = path + (path.empty() ? "" : "/") + entry.name;
      if (Visit(absolute + "/" + entry.name, below, entry, stat)) ++subdirectories;
    }
    if (stat.st_nlink != 2 + subdirectories) {
      Complain(path, "has " + std::to_string(stat.st_nlink) + " links and " +
                         std::to_string(subdirectories) + " subdirectories");
    }
  }

  // Adds one entry to the digest. Returns whether it is a directory.
  bool Visit(const std::string& absolute, const std::string& path, const Entry& entry,
             const struct stat& parent) {
    struct stat stat = {};
    if (lstat(absolute.c_str(), &stat) != 0) {
      ComplainOfCall(path, "is listed; lstat");
      return false;
    }
    if (stat.st_ino != entry.inode) Complain(path, "is listed with another inode number");
    if (IFTODT(stat.st_mode) != entry.type) Complain(path, "is listed with another type");
    digest_ = Digest();
    AddXattrs(absolute, path);
    if (S_ISREG(stat.st_mode)) AddContent(absolute, path, stat);
    if (S_ISLNK(stat.st_mode)) AddTarget(absolute, path, stat);
    AddLine(path, stat);
    if (S_ISDIR(stat.st_mode)) {
      if (fresh_ && ListedParent(absolute) != parent.st_ino)
        Complain(path, "does not list its parent");
      VisitDirectory(absolute, path, stat);
      return true;
    }
    Names& names = names_[stat.st_ino];
    names.one = path;
    names.expected = stat.st_nlink;
    ++names.found;
    return false;
  }

  // Returns the inode number of ".." in the listing, which comes from the file system. A stat of
  // ".." would not test it, because the kernel answers this call from its own caches.
  static ino_t ListedParent(const std::string& absolute) {
    DIR* stream = opendir(absolute.c_str());
    if (stream == nullptr) return 0;
    ino_t parent = 0;
    while (const dirent* entry = readdir(stream)) {
      if (std::strcmp(entry->d_name, "..") == 0) parent = entry->d_ino;
    }
    closedir(stream);
    return parent;
  }

  void AddLine(const std::string& path, const struct stat& stat) {
    char text[300];
    std::snprintf(text, sizeof text,
                  " inode %llu mode %o links %llu owner %u:%u device %llx size %lld modified "
                  "%lld.%09ld changed %lld.%09ld content %016llx",
                  static_cast<unsigned long long>(stat.st_ino), stat.st_mode,
                  static_cast<unsigned long long>(stat.st_nlink), stat.st_uid, stat.st_gid,
                  static_cast<unsigned long long>(stat.st_rdev),
                  static_cast<long long>(stat.st_size), static_cast<long long>(stat.st_mtim.tv_sec),
                  stat.st_mtim.tv_nsec, static_cast<long long>(stat.st_ctim.tv_sec),
                  stat.st_ctim.tv_nsec, static_cast<unsigned long long>(digest_.value()));
    result_.lines.push_back("/" + path + text);
  }

  void AddXattrs(const std::string& absolute, const std::string& path) {
    std::string list(65'536, '\0');
    const ssize_t size = llistxattr(absolute.c_str(), list.data(), list.size());
    if (size < 0) return ComplainOfCall(path, "llistxattr");
    std::vector<std::string> names;
    for (size_t begin = 0; begin < static_cast<size_t>(size); begin += names.back().size() + 1) {
      names.emplace_back(list.c_str() + begin);
    }
    std::sort(names.begin(), names.end());
    std::string value(65'536, '\0');
    for (const std::string& name : names) {
      const ssize_t got = lgetxattr(absolute.c_str(), name.c_str(), value.data(), value.size());
      if (got < 0) return ComplainOfCall(path, "lgetxattr " + name);
      digest_.Add(name);
      digest_.Add(std::string_view(value).substr(0, static_cast<size_t>(got)));
    }
  }

  void AddContent(const std::string& absolute, const std::string& path, const struct stat& stat) {
    const int fd = open(absolute.c_str(), O_RDONLY);
    if (fd < 0) return ComplainOfCall(path, "open");
    Bytes content(static_cast<size_t>(stat.st_size) + 1);
    const ssize_t count = pread(fd, content.data(), content.size(), 0);
    if (count < 0) ComplainOfCall(path, "pread");
    close(fd);
    if (count != stat.st_size) Complain(path, "is not as long as stat says");
    content.resize(count < 0 ? 0 : static_cast<size_t>(count));
    digest_.Add(AsText(content));
    result_.bytes += content.size();
  }

  void AddTarget(const std::string& absolute, const std::string& path, const struct stat& stat) {
    std::string target(4096, '\0');
    const ssize_t size = readlink(absolute.c_str(), target.data(), target.size());
    if (size < 0) return ComplainOfCall(path, "readlink");
    if (size != stat.st_size) Complain(path, "is not as long as stat says");
    digest_.Add(std::string_view(target).substr(0, static_cast<size_t>(size)));
  }

  const bool fresh_;
  TreeDigest result_;
  Digest digest_;  // of the current entry
  std::map<ino_t, Names> names_;
  std::string complaints_;
};

}  // namespace

TreeDigest DigestTree(const std::string& root, bool fresh) { return TreeWalk(fresh).Run(root); }

}  // namespace siltfs::testing
