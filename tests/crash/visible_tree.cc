#include "tests/crash/visible_tree.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "fs/interface/content_source.h"
#include "fs/interface/directory_quotas.h"
#include "fs/interface/entry_store.h"
#include "fs/interface/snapshots.h"
#include "tests/crash/model_snapshots.h"
#include "tests/crash/operation.h"
#include "tests/crash/source_image.h"

namespace siltfs::testing {
namespace {

class TreeReader {
 public:
  // `sources`: whether to describe the sources of imported files.
  TreeReader(FileSystem& fs, Times times, bool sources = true)
      : fs_(fs), times_(times), sources_(sources) {}

  struct Entry {
    InodeNumber parent = 0;
    std::string name;
  };

  Status Visit(InodeNumber inode, const std::string& path, const Entry& entry) {
    SILTFS_ASSIGN_OR_RETURN(const Attributes attributes, fs_.GetAttributes(inode));
    const bool directory = S_ISDIR(attributes.mode);
    text_ += fmt::format("{} mode {:o} links {} owner {}:{}", path, attributes.mode,
                         attributes.links, attributes.uid, attributes.gid);
    if (!directory) text_ += fmt::format(" size {}", attributes.size);
    if (attributes.device != 0) text_ += fmt::format(" device {}", attributes.device);
    if (times_ == Times::kSeen) {
      text_ += fmt::format(" times {} {} {} {}", attributes.atime, attributes.mtime,
                           attributes.ctime, attributes.btime);
    } else if (attributes.mtime > 0 && attributes.mtime < kFirstTime) {
      // The time is that of a source, not of a clock. It decides what later imports do.
      text_ += fmt::format(" mtime {}", attributes.mtime);
    }
    SILTFS_RETURN_IF_ERROR(AddXattrs(inode));
    if (S_ISLNK(attributes.mode)) {
      SILTFS_ASSIGN_OR_RETURN(const std::string target, fs_.ReadLink(inode));
      text_ += " -> " + target;
    }
    if (S_ISREG(attributes.mode)) {
      const auto [known, is_new] = first_path_.emplace(inode, path);
      if (!is_new) text_ += " same as " + known->second;
      if (is_new) {
        SILTFS_RETURN_IF_ERROR(AddContent(inode, attributes.size));
        if (sources_) SILTFS_RETURN_IF_ERROR(AddSource(attributes, entry));
      }
    }
    text_ += "\n";
    return directory ? VisitEntries(inode, path) : Status::Ok();
  }

  std::string& text() { return text_; }

 private:
  Status AddXattrs(InodeNumber inode) {
    SILTFS_ASSIGN_OR_RETURN(std::vector<std::string> names, fs_.ListXattrs(inode));
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      SILTFS_ASSIGN_OR_RETURN(const std::string value, fs_.GetXattr(inode, name));
      text_ += fmt::format(" {}={} {:016x}", name, value.size(),
                           XXH3_64bits(value.data(), value.size()));
    }
    return Status::Ok();
  }

  Status AddContent(InodeNumber inode, uint64_t size) {
    Bytes bytes(size);
    SILTFS_ASSIGN_OR_RETURN(const size_t got, fs_.Read(inode, 0, bytes));
    text_ += fmt::format(" content {:016x} ({})", XXH3_64bits(bytes.data(), got), got);
    return Status::Ok();
  }

  // Adds the state of a source from which an import has put the file, if the file has not changed
  // since. Programs do not see this state, but it decides what later offers do.
  Status AddSource(const Attributes& attributes, const Entry& entry) {
    for (const SourceFacts& facts : FactsWith(attributes.mtime, attributes.size)) {
      EntryImage image{.parent = entry.parent, .name = entry.name};
      image.mode = attributes.mode;
      image.uid = attributes.uid;
      image.gid = attributes.gid;
      image.size = attributes.size;
      image.mtime = attributes.mtime;
      image.source = facts;
      SILTFS_ASSIGN_OR_RETURN(const PutOutcome outcome,
                              fs_.entries().Offer(image, /*reference=*/0, false));
      if (outcome.effect != PutEffect::kUnchanged) continue;
      text_ += fmt::format(" source {} {}", facts.inode, facts.ctime);
      SILTFS_RETURN_IF_ERROR(CompareWithExport(attributes));
    }
    return Status::Ok();
  }

  // Checks that an export, which reads chunks by their places, reads the same content.
  Status CompareWithExport(const Attributes& attributes) {
    const auto reader = fs_.contents().NewReader();
    if (!reader) return Status::Ok();  // a model without chunks
    Bytes expected(attributes.size);
    SILTFS_RETURN_IF_ERROR(fs_.Read(attributes.inode, 0, expected).status());
    Bytes exported(attributes.size);  // holes are zeros
    Status read;
    SILTFS_RETURN_IF_ERROR(
        fs_.contents().Visit(attributes.inode, 0, [&](const ContentPiece& piece) {
          const auto out = MutableByteView(exported).subspan(piece.offset, piece.length);
          if (piece.kind == ContentPiece::Kind::kChunk) read = reader->Read(piece.chunk, out);
          if (piece.kind == ContentPiece::Kind::kOther)
            read = fs_.Read(attributes.inode, piece.offset, out).status();
          return read.ok();
        }));
    SILTFS_RETURN_IF_ERROR(std::move(read));
    if (exported == expected) return Status::Ok();
    return Status(StatusCode::kCorruption, "is exported with another content");
  }

  Status VisitEntries(InodeNumber directory, const std::string& path) {
    std::map<std::string, InodeNumber> entries;
    uint64_t last = 0;
    bool ascending = true;
    bool unique = true;
    SILTFS_RETURN_IF_ERROR(fs_.ReadDirectory(directory, 0, [&](const DirectoryRecord& record) {
      ascending = ascending && record.cookie > last;
      last = record.cookie;
      if (record.name == "." || record.name == "..") return true;
      unique = entries.emplace(record.name, record.inode).second && unique;
      return true;
    }));
    if (!ascending || !unique) {
      return Status(StatusCode::kCorruption, "is listed with a cookie or a name twice").At(path);
    }
    for (const auto& [name, inode] : entries) {
      SILTFS_ASSIGN_OR_RETURN(const Attributes child, fs_.Lookup(directory, name));
      fs_.Forget(child.inode, 1);
      if (child.inode != inode) {
        return Status(StatusCode::kCorruption, "has one inode in the listing and another by name")
            .At(path + "/" + name);
      }
      SILTFS_RETURN_IF_ERROR(Visit(inode, path + "/" + name, {directory, name}));
    }
    return Status::Ok();
  }

  FileSystem& fs_;
  const Times times_;
  const bool sources_;
  std::string text_;
  std::map<InodeNumber, std::string> first_path_;  // for files with several names
};

// Describes the thread's directory in a root directory.
Result<std::string> DescribeIn(FileSystem& fs, InodeNumber root, unsigned thread,
                               TreeReader reader) {
  auto directory = fs.Lookup(root, ThreadDirectory(thread));
  if (directory.status().Is(StatusCode::kNotFound)) return std::string("nothing\n");
  if (!directory.ok()) return std::move(directory).status();
  const Status read = reader.Visit(directory->inode, "", {});
  fs.Forget(directory->inode, 1);
  SILTFS_RETURN_IF_ERROR(read);
  return std::move(reader.text());
}

// Adds the limits of the thread's directory, if it has a quota.
Status AddQuota(FileSystem& fs, unsigned thread, std::string& text) {
  if (fs.quotas() == nullptr) return Status::Ok();
  const auto directory = fs.Lookup(kRootInode, ThreadDirectory(thread));
  if (directory.status().Is(StatusCode::kNotFound)) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(directory.status());
  fs.Forget(directory->inode, 1);
  SILTFS_ASSIGN_OR_RETURN(const auto quota, fs.quotas()->Of(directory->inode));
  if (quota) text += fmt::format("quota {} {}\n", quota->bytes_limit, quota->files_limit);
  return Status::Ok();
}

Result<std::string> DescribeSnapshot(FileSystem& fs, const std::string& name, unsigned thread,
                                     Times times) {
  if (auto* const model = dynamic_cast<ModelSnapshots*>(&fs.snapshots()))
    return model->TextOf(name);
  SILTFS_ASSIGN_OR_RETURN(const Attributes all, fs.Lookup(kRootInode, kSnapshotDirectoryName));
  SILTFS_ASSIGN_OR_RETURN(const Attributes root, fs.Lookup(all.inode, name));
  auto text = DescribeIn(fs, root.inode, thread, TreeReader(fs, times, false));
  fs.Forget(root.inode, 1);
  fs.Forget(all.inode, 1);
  return text;
}

}  // namespace

Result<std::string> DescribeForSnapshot(FileSystem& fs, unsigned thread, Times times) {
  return DescribeIn(fs, kRootInode, thread, TreeReader(fs, times, false));
}

Result<std::string> DescribeTree(FileSystem& fs, unsigned thread, Times times) {
  SILTFS_ASSIGN_OR_RETURN(std::string text,
                          DescribeIn(fs, kRootInode, thread, TreeReader(fs, times)));
  SILTFS_RETURN_IF_ERROR(AddQuota(fs, thread, text));
  std::set<std::string> names;
  for (const SnapshotInfo& snapshot : fs.snapshots().List()) {
    if (snapshot.name.starts_with(SnapshotName(thread, ""))) names.insert(snapshot.name);
  }
  for (const std::string& name : names) {
    SILTFS_ASSIGN_OR_RETURN(const std::string state, DescribeSnapshot(fs, name, thread, times));
    text += "snapshot " + name + "\n" + state;
  }
  return text;
}

uint64_t DigestOf(const std::string& description) {
  return XXH3_64bits(description.data(), description.size());
}

Result<uint64_t> DigestTree(FileSystem& fs, unsigned thread, Times times) {
  SILTFS_ASSIGN_OR_RETURN(const std::string text, DescribeTree(fs, thread, times));
  return DigestOf(text);
}

Result<InodeCounts> CountInodes(FileSystem& fs) {
  InodeCounts counts;
  std::set<InodeNumber> files;
  std::vector<InodeNumber> directories{kRootInode};
  while (!directories.empty()) {
    const InodeNumber directory = directories.back();
    directories.pop_back();
    ++counts.directories;
    SILTFS_RETURN_IF_ERROR(fs.ReadDirectory(directory, 0, [&](const DirectoryRecord& record) {
      if (record.name == "." || record.name == "..") return true;
      if (S_ISDIR(record.mode)) {
        directories.push_back(record.inode);
      } else {
        files.insert(record.inode);
      }
      return true;
    }));
  }
  counts.files = files.size();
  return counts;
}

}  // namespace siltfs::testing
