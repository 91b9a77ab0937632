#include "tests/crash/operation.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <map>
#include <set>

#include "fs/core/posix_acl.h"
#include "fs/core/stats.h"
#include "store/base/coding.h"
#include "tests/support/acl_text.h"

namespace siltfs::testing {
namespace {

using Kind = Operation::Kind;

constexpr Caller kCaller{.uid = 1000, .gid = 1000};
constexpr uint8_t kLastKind = static_cast<uint8_t>(Kind::kReopen);
constexpr std::array<const char*, kLastKind + 1> kKindNames = {
    "create",     "open",     "overwrite",  "write",   "append",   "truncate",
    "punch-hole", "allocate", "copy-range", "close",   "rename",   "rename-new",
    "exchange",   "link",     "unlink",     "mkdir",   "rmdir",    "symlink",
    "mknod",      "chmod",    "chown",      "utimens", "setxattr", "removexattr",
    "setfacl",    "fsync",    "sync",       "settle",  "gc",       "reopen"};

// Fills `data` with lines that compress better in larger blocks, so that recompression makes
// segments smaller.
void FillWithLines(uint64_t seed, Bytes& data) {
  constexpr size_t kLine = 64;
  constexpr size_t kLines = 100;
  Bytes lines(kLine * kLines);
  Random(1).Fill(lines);
  Random random(seed);
  for (size_t at = 0; at < data.size(); at += kLine) {
    const size_t size = std::min(kLine, data.size() - at);
    const auto line = lines.begin() + static_cast<ptrdiff_t>(random.Below(kLines) * kLine);
    std::copy(line, line + static_cast<ptrdiff_t>(size), data.begin() + static_cast<ptrdiff_t>(at));
  }
}

constexpr uint64_t kContents = 3;
constexpr uint64_t kParts = 16;  // places in a content where data may begin
constexpr uint64_t kPartSize = 4096;
constexpr uint64_t kFirstPartSeed = uint64_t{1} << 56;
constexpr uint64_t kPartSeeds = kFirstPartSeed + kContents * kParts;

// Returns a seed that stands for a part of a content. Seeds outside of the range of part seeds
// stand for kinds of data.
uint64_t PartSeed(uint64_t content, uint64_t part) {
  return kFirstPartSeed + content * kParts + part;
}

void FillWithPart(uint64_t part, Bytes& data) {
  Bytes content(part % kParts * kPartSize + data.size());
  Random(part / kParts).Fill(content);
  std::copy(content.end() - static_cast<ptrdiff_t>(data.size()), content.end(), data.begin());
}

// Returns the step's data: a part of a content, zeros, compressible duplicate data, or
// incompressible unique data.
Bytes DataOf(const Operation& operation) {
  Bytes data(operation.size);
  if (operation.data_seed >= kFirstPartSeed && operation.data_seed < kPartSeeds) {
    FillWithPart(operation.data_seed - kFirstPartSeed, data);
    return data;
  }
  switch (operation.data_seed % 5) {
    case 0:
      break;
    case 1: {
      Random few(operation.data_seed % 3);
      few.Fill(data);
      break;
    }
    case 2:
      for (size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<uint8_t>((i / 97) * operation.data_seed);
      break;
    case 3:
      FillWithLines(operation.data_seed, data);
      break;
    default:
      Random(operation.data_seed).Fill(data);
  }
  return data;
}

std::string XattrValue(uint64_t seed) {
  Bytes value(seed % 200);
  Random(seed).Fill(value);
  return std::string(AsText(value));
}

bool IsDefaultAcl(uint64_t seed) { return seed % 2 == 0; }

// Returns an access control list that names at most two users. A list without names is equivalent
// to a mode.
std::string AclValue(uint64_t seed) {
  const auto permissions = [&seed] {
    seed /= 8;
    return fmt::format("{}{}{}", seed & 4 ? "r" : "-", seed & 2 ? "w" : "-", seed & 1 ? "x" : "-");
  };
  const uint64_t named = seed % 3;
  std::string text = "u::" + permissions();
  for (uint64_t i = 1; i <= named; ++i) text += fmt::format(",u:{}:{}", i, permissions());
  text += ",g::" + permissions();
  if (named > 0) text += ",m::" + permissions();
  return AclFromText(text + ",o::" + permissions());
}

uint32_t NodeMode(uint64_t seed) {
  static constexpr uint32_t kTypes[] = {S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK};
  return kTypes[seed % std::size(kTypes)] | 0600;
}

uint64_t NodeDevice(uint64_t seed) {
  return S_ISCHR(NodeMode(seed)) || S_ISBLK(NodeMode(seed)) ? 1 + seed % 4000 : 0;
}

bool ActsOnSlot(Kind kind) {
  switch (kind) {
    case Kind::kWrite:
    case Kind::kAppend:
    case Kind::kTruncate:
    case Kind::kPunchHole:
    case Kind::kAllocate:
    case Kind::kCopyRange:
    case Kind::kClose:
    case Kind::kFsync:
      return true;
    default:
      return false;
  }
}

}  // namespace

Bytes EncodeOperation(const Operation& operation) {
  Encoder out;
  out.U8(static_cast<uint8_t>(operation.kind)).U8(operation.slot);
  out.Text16(operation.directory).Text16(operation.name);
  out.Text16(operation.other_directory).Text16(operation.other_name);
  out.U64(operation.offset).U32(operation.size).U64(operation.data_seed).I64(operation.time);
  const ByteView all = out.view();
  return {all.begin(), all.end()};
}

Result<Operation> DecodeOperation(ByteView bytes) {
  Decoder in(bytes);
  Operation operation;
  const uint8_t kind = in.U8();
  operation.slot = in.U8();
  operation.directory = in.Text16();
  operation.name = in.Text16();
  operation.other_directory = in.Text16();
  operation.other_name = in.Text16();
  operation.offset = in.U64();
  operation.size = in.U32();
  operation.data_seed = in.U64();
  operation.time = in.I64();
  if (!in.Done() || kind > kLastKind || operation.slot >= kSlots) {
    return Status(StatusCode::kCorruption, "is not an operation");
  }
  operation.kind = static_cast<Kind>(kind);
  return operation;
}

std::string Describe(const Operation& operation) {
  std::string text = kKindNames.at(static_cast<size_t>(operation.kind));
  if (ActsOnSlot(operation.kind)) {
    text += fmt::format(" slot {}", operation.slot);
  } else if (!operation.name.empty()) {
    text += fmt::format(" {}/{}", operation.directory, operation.name);
  }
  if (!operation.other_name.empty())
    text += fmt::format(" {}/{}", operation.other_directory, operation.other_name);
  if (operation.size > 0 || operation.offset > 0)
    text += fmt::format(" {} bytes at {}", operation.size, operation.offset);
  return text;
}

std::string ThreadDirectory(unsigned thread) { return fmt::format("t{}", thread); }

// --- OperationGenerator

OperationGenerator::OperationGenerator(uint64_t seed, uint32_t largest_write, Mix mix)
    : random_(seed), largest_write_(largest_write), mix_(mix) {}

std::string OperationGenerator::Name() { return fmt::format("n{}", random_.Below(7)); }

std::string OperationGenerator::Directory() {
  const uint64_t which = random_.Below(4);
  return which < 2 ? "" : fmt::format("d{}", which);
}

Operation OperationGenerator::Data(Kind kind) {
  Operation operation;
  operation.kind = kind;
  operation.slot = static_cast<uint8_t>(random_.Below(kSlots));
  const uint32_t shift = static_cast<uint32_t>(random_.Below(5));
  operation.size = 1 + static_cast<uint32_t>(random_.Below((largest_write_ >> shift) + 1));
  operation.offset = random_.Below(uint64_t{largest_write_} * 3);
  if (random_.OneIn(3)) operation.offset = operation.offset / 4096 * 4096;
  operation.data_seed = random_.Next();
  return operation;
}

// Plans the steps of a typical way to write a file, or a single step.
void OperationGenerator::Plan() {
  Operation target;
  target.directory = Directory();
  target.name = Name();
  target.slot = static_cast<uint8_t>(random_.Below(kSlots));
  auto then = [&](Kind kind) {
    Operation operation = Data(kind);
    operation.slot = target.slot;
    operation.directory = target.directory;
    operation.name = target.name;
    planned_.push_back(operation);
  };
  const uint64_t way = random_.Below(10);
  if (way < 3) {  // replace by rename, often without fsync
    const std::string goal = target.name;
    target.name = goal + ".tmp";
    then(Kind::kCreate);
    for (uint64_t n = 1 + random_.Below(3); n > 0; --n) then(Kind::kAppend);
    if (random_.OneIn(3)) then(Kind::kFsync);
    then(Kind::kClose);
    then(Kind::kRename);
    planned_.back().other_directory = target.directory;
    planned_.back().other_name = goal;
  } else if (way < 6) {  // a whole file
    then(random_.OneIn(3) ? Kind::kOverwrite : Kind::kCreate);
    for (uint64_t n = random_.Below(4); n > 0; --n) then(Kind::kAppend);
    if (random_.OneIn(4)) then(Kind::kFsync);
    if (!random_.OneIn(3)) then(Kind::kClose);
  } else if (way < 8) {  // a database
    then(Kind::kOpen);
    for (uint64_t n = 1 + random_.Below(4); n > 0; --n) {
      then(Kind::kWrite);
      if (random_.OneIn(2)) then(Kind::kFsync);
    }
  } else if (way == 8) {  // an invisible temporary file
    then(Kind::kCreate);
    then(Kind::kUnlink);
    then(Kind::kAppend);
    then(Kind::kWrite);
  } else {
    for (int i = 0; i < 3; ++i) planned_.push_back(Simple());
  }
  std::reverse(planned_.begin(), planned_.end());
}

Operation OperationGenerator::Simple() {
  static constexpr Kind kKinds[] = {
      Kind::kTruncate,  Kind::kPunchHole,     Kind::kAllocate, Kind::kCopyRange,
      Kind::kCopyRange, Kind::kClose,         Kind::kRename,   Kind::kRenameNew,
      Kind::kExchange,  Kind::kLink,          Kind::kUnlink,   Kind::kUnlink,
      Kind::kSymlink,   Kind::kMakeDirectory, Kind::kSetMode,  Kind::kRemoveDirectory,
      Kind::kSetXattr,  Kind::kRemoveXattr,   Kind::kWrite,    Kind::kMakeDirectory,
      Kind::kMakeNode,  Kind::kSetOwner,      Kind::kSetTimes, Kind::kSetAcl};
  Operation operation = Data(kKinds[random_.Below(std::size(kKinds))]);
  operation.directory = Directory();
  operation.name = Name();
  operation.other_directory = Directory();
  operation.other_name = Name();
  if (operation.kind == Kind::kMakeDirectory || operation.kind == Kind::kRemoveDirectory ||
      (operation.kind == Kind::kSetAcl && IsDefaultAcl(operation.data_seed))) {
    operation.directory.clear();
    operation.name = fmt::format("d{}", 2 + random_.Below(2));
  }
  return operation;
}

Operation OperationGenerator::Part(Kind kind) {
  Operation operation = Data(kind);
  operation.data_seed = PartSeed(random_.Below(kContents), random_.Below(kParts));
  return operation;
}

Operation OperationGenerator::NextOfCopies() {
  if (planned_.empty()) {
    Operation target;
    target.name = Name();
    target.slot = static_cast<uint8_t>(random_.Below(kSlots));
    auto then = [&](Kind kind) {
      Operation operation = Part(kind);
      operation.slot = target.slot;
      operation.name = target.name;
      planned_.push_back(operation);
    };
    const uint64_t way = random_.Below(12);
    if (way < 5) {
      then(random_.OneIn(2) ? Kind::kOverwrite : Kind::kCreate);
      for (uint64_t n = 1 + random_.Below(2); n > 0; --n) then(Kind::kAppend);
      if (random_.OneIn(3)) then(Kind::kFsync);
      then(Kind::kClose);
    } else if (way < 8) {
      then(Kind::kUnlink);
    } else if (way < 9) {
      then(Kind::kOpen);
      then(random_.OneIn(2) ? Kind::kTruncate : Kind::kPunchHole);
      then(Kind::kClose);
    } else {
      Operation operation;
      operation.kind = way < 11 ? Kind::kCollect : Kind::kSyncAll;
      planned_.push_back(operation);
    }
    std::reverse(planned_.begin(), planned_.end());
  }
  Operation next = std::move(planned_.back());
  planned_.pop_back();
  return next;
}

Operation OperationGenerator::Next() {
  Operation next = mix_ == Mix::kCopies ? NextOfCopies() : NextUntimed();
  next.time = time_ += 1 + static_cast<int64_t>(random_.Below(1'000'000));
  return next;
}

Operation OperationGenerator::NextUntimed() {
  if (planned_.empty() && random_.OneIn(8)) {
    Operation sync;
    constexpr std::array kKinds = {Kind::kSyncAll, Kind::kSyncAll, Kind::kRecompress,
                                   Kind::kCollect};
    sync.kind = kKinds[random_.Below(kKinds.size())];
    return sync;
  }
  if (planned_.empty() && random_.OneIn(2)) return Simple();
  if (planned_.empty()) Plan();
  Operation next = std::move(planned_.back());
  planned_.pop_back();
  return next;
}

// --- Stepper

Status Stepper::Begin() {
  auto made = fs_.MakeDirectory(kRootInode, ThreadDirectory(thread_), 0755, kCaller);
  if (!made.ok()) return std::move(made).status();
  fs_.Forget(made->inode, 1);
  return Status::Ok();
}

std::string Stepper::Answer(Status status) {
  last_.IgnoreError("the answer told of it");
  last_ = std::move(status);
  return std::string(StatusCodeName(last_.code()));
}

std::string Stepper::AnswerMade(const Result<Attributes>& result) {
  if (result.ok()) made_ = result->inode;
  return Answer(result);
}

std::string Stepper::Answer(const Result<Attributes>& result) {
  if (!result.ok()) return Answer(result.status());
  touched_.push_back(result->inode);
  fs_.Forget(result->inode, 1);
  return Answer(Status::Ok());
}

Result<InodeNumber> Stepper::Find(const std::string& directory, const std::string& name) {
  InodeNumber inode = kRootInode;
  for (const std::string& part : {ThreadDirectory(thread_), directory, name}) {
    if (part.empty()) continue;
    auto found = fs_.Lookup(inode, part);
    if (!found.ok()) return std::move(found).status();
    inode = found->inode;
    fs_.Forget(inode, 1);
  }
  return inode;
}

void Stepper::Close(uint8_t slot) {
  if (slots_.at(slot) != 0) fs_.ReleaseFile(slots_.at(slot));
  slots_.at(slot) = 0;
}

void Stepper::ReleaseAll() {
  for (uint8_t slot = 0; slot < kSlots; ++slot) Close(slot);
}

std::string Stepper::OpenInto(uint8_t slot, InodeNumber inode, bool truncate) {
  auto attributes = fs_.GetAttributes(inode);
  if (!attributes.ok()) return Answer(attributes.status());
  if (!S_ISREG(attributes->mode)) return "not a file";
  Status opened = fs_.OpenFile(inode, truncate);
  if (opened.ok()) {
    Close(slot);
    slots_.at(slot) = inode;
    touched_.push_back(inode);
  }
  return Answer(std::move(opened));
}

std::string Stepper::StepOnSlot(const Operation& operation) {
  const InodeNumber inode = slots_.at(operation.slot);
  if (inode == 0) return "nothing open";
  touched_.push_back(inode);
  switch (operation.kind) {
    case Kind::kWrite:
      return Answer(fs_.Write(inode, operation.offset, DataOf(operation)));
    case Kind::kAppend: {
      auto attributes = fs_.GetAttributes(inode);
      if (!attributes.ok()) return Answer(attributes.status());
      return Answer(fs_.Write(inode, attributes->size, DataOf(operation)));
    }
    case Kind::kTruncate: {
      AttributeChange change;
      change.size = operation.offset;
      return Answer(fs_.SetAttributes(inode, change).status());
    }
    case Kind::kPunchHole:
      return Answer(fs_.Allocate(inode, AllocateMode::kZero, operation.offset, operation.size,
                                 operation.data_seed % 2 == 0));
    case Kind::kAllocate:
      return Answer(fs_.Allocate(inode, AllocateMode::kReserve, operation.offset, operation.size,
                                 operation.data_seed % 4 == 0));
    case Kind::kCopyRange:
      return CopyRange(operation);
    case Kind::kFsync:
      return Answer(fs_.Fsync(inode));
    default:
      Close(operation.slot);
      return Answer(Status::Ok());
  }
}

std::string Stepper::CopyRange(const Operation& operation) {
  const InodeNumber target = slots_.at(operation.slot);
  const InodeNumber source = slots_.at((operation.slot + 1) % kSlots);
  if (source == 0) return "nothing to copy open";
  touched_.push_back(source);  // it may get folded
  auto attributes = fs_.GetAttributes(source);
  if (!attributes.ok()) return Answer(attributes.status());
  // Copies the whole file, or a part of it.
  const uint64_t begin = operation.data_seed % 3 == 0 ? 0 : operation.offset / 2;
  const uint64_t length = operation.data_seed % 3 == 0 ? attributes->size : operation.size;
  const uint64_t to = operation.data_seed % 2 == 0 ? begin : operation.offset;
  return Answer(fs_.CopyRange(source, begin, target, to, length).status());
}

std::string Stepper::StepOnName(const Operation& operation, InodeNumber directory,
                                InodeNumber other) {
  const std::string& name = operation.name;
  auto rename = [&](RenameMode mode) {
    return Answer(fs_.Rename(directory, name, other, operation.other_name, mode));
  };
  switch (operation.kind) {
    case Kind::kCreate: {
      auto created = fs_.CreateFile(directory, name, 0100640, kCaller);
      if (created.ok()) {
        Close(operation.slot);
        slots_.at(operation.slot) = created->inode;
      }
      return AnswerMade(created);
    }
    case Kind::kRename:
      return rename(RenameMode::kReplace);
    case Kind::kRenameNew:
      return rename(RenameMode::kNoReplace);
    case Kind::kExchange:
      return rename(RenameMode::kExchange);
    case Kind::kUnlink:
      return Answer(fs_.Unlink(directory, name));
    case Kind::kMakeDirectory:
      return AnswerMade(fs_.MakeDirectory(directory, name, 0750, kCaller));
    case Kind::kRemoveDirectory:
      return Answer(fs_.RemoveDirectory(directory, name));
    case Kind::kSymlink:
      return AnswerMade(fs_.MakeSymlink(directory, name, operation.other_name, kCaller));
    case Kind::kMakeNode:
      return AnswerMade(fs_.MakeNode(directory, name, NodeMode(operation.data_seed),
                                     NodeDevice(operation.data_seed), kCaller));
    default:
      break;
  }
  auto target = Find(operation.directory, name);
  if (!target.ok()) return Answer(target.status());
  touched_.push_back(*target);
  const std::string attribute = "user." + operation.other_name;
  AttributeChange change;
  switch (operation.kind) {
    case Kind::kOpen:
      return OpenInto(operation.slot, *target, false);
    case Kind::kOverwrite:
      return OpenInto(operation.slot, *target, true);
    case Kind::kLink:
      return Answer(fs_.Link(*target, other, operation.other_name));
    case Kind::kSetMode:
      change.mode = static_cast<uint32_t>(operation.data_seed & 0777);
      return Answer(fs_.SetAttributes(*target, change).status());
    case Kind::kSetOwner:
      change.uid = static_cast<uint32_t>(operation.data_seed % 7);
      change.gid = static_cast<uint32_t>(operation.data_seed % 5);
      return Answer(fs_.SetAttributes(*target, change).status());
    case Kind::kSetTimes:
      change.atime = static_cast<int64_t>(operation.data_seed >> 2);
      change.mtime = -static_cast<int64_t>(operation.data_seed >> 3);
      return Answer(fs_.SetAttributes(*target, change).status());
    case Kind::kSetXattr:
      return Answer(
          fs_.SetXattr(*target, attribute, XattrValue(operation.data_seed), XattrMode::kSet));
    case Kind::kSetAcl: {
      const uint64_t seed = operation.data_seed / 16;
      const std::string_view list =
          IsDefaultAcl(operation.data_seed) ? kDefaultAclName : kAccessAclName;
      if (operation.data_seed % 16 < 2) return Answer(fs_.RemoveXattr(*target, list));
      return Answer(fs_.SetXattr(*target, list, AclValue(seed), XattrMode::kSet));
    }
    default:
      return Answer(fs_.RemoveXattr(*target, attribute));
  }
}

std::string Stepper::Step(const Operation& operation) {
  touched_.clear();
  made_ = 0;
  last_.IgnoreError("the answer told of it");
  last_ = Status();
  last_.IgnoreError("none yet");
  if (operation.kind == Kind::kSyncAll) return Answer(fs_.SyncAll());
  if (operation.kind == Kind::kRecompress) return Answer(fs_.Recompress().status());
  if (operation.kind == Kind::kCollect) return Answer(fs_.CollectGarbage(false).status());
  if (operation.kind == Kind::kReopen) return "reopened";
  if (ActsOnSlot(operation.kind)) return StepOnSlot(operation);
  auto directory = Find(operation.directory, "");
  if (!directory.ok()) return Answer(directory.status());
  auto other = Find(operation.other_directory, "");
  if (!other.ok()) return Answer(other.status());
  for (const auto& [where, name] : {std::pair(operation.directory, operation.name),
                                    std::pair(operation.other_directory, operation.other_name)}) {
    auto found = Find(where, name);
    if (found.ok() && !name.empty()) touched_.push_back(*found);
  }
  return StepOnName(operation, *directory, *other);
}

// --- Trees

namespace {

class TreeReader {
 public:
  TreeReader(FileSystem& fs, Times times) : fs_(fs), times_(times) {}

  Status Visit(InodeNumber inode, const std::string& path) {
    SILTFS_ASSIGN_OR_RETURN(const Attributes attributes, fs_.GetAttributes(inode));
    const bool directory = S_ISDIR(attributes.mode);
    text_ += fmt::format("{} mode {:o} links {} owner {}:{}", path, attributes.mode,
                         attributes.links, attributes.uid, attributes.gid);
    if (!directory) text_ += fmt::format(" size {}", attributes.size);
    if (attributes.device != 0) text_ += fmt::format(" device {}", attributes.device);
    if (times_ == Times::kSeen) {
      text_ += fmt::format(" times {} {} {} {}", attributes.atime, attributes.mtime,
                           attributes.ctime, attributes.btime);
    }
    SILTFS_RETURN_IF_ERROR(AddXattrs(inode));
    if (S_ISLNK(attributes.mode)) {
      SILTFS_ASSIGN_OR_RETURN(const std::string target, fs_.ReadLink(inode));
      text_ += " -> " + target;
    }
    if (S_ISREG(attributes.mode)) {
      const auto [known, is_new] = first_path_.emplace(inode, path);
      if (!is_new) text_ += " same as " + known->second;
      if (is_new) SILTFS_RETURN_IF_ERROR(AddContent(inode, attributes.size));
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
        return Status(StatusCode::kCorruption, "is another inode by name than in its directory")
            .At(path + "/" + name);
      }
      SILTFS_RETURN_IF_ERROR(Visit(inode, path + "/" + name));
    }
    return Status::Ok();
  }

  FileSystem& fs_;
  const Times times_;
  std::string text_;
  std::map<InodeNumber, std::string> first_path_;  // for files with several names
};

}  // namespace

Result<std::string> DescribeTree(FileSystem& fs, unsigned thread, Times times) {
  auto root = fs.Lookup(kRootInode, ThreadDirectory(thread));
  if (root.status().Is(StatusCode::kNotFound)) return std::string("nothing\n");
  if (!root.ok()) return std::move(root).status();
  fs.Forget(root->inode, 1);
  TreeReader reader(fs, times);
  SILTFS_RETURN_IF_ERROR(reader.Visit(root->inode, ""));
  return std::move(reader.text());
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
