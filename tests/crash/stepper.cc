#include "tests/crash/stepper.h"

#include <sys/stat.h>

#include <utility>

#include "fs/interface/directory_quotas.h"
#include "fs/interface/posix_acl.h"
#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "tests/crash/operation_data.h"

namespace siltfs::testing {
namespace {

using Kind = Operation::Kind;

constexpr Caller kCaller{.uid = 1000, .gid = 1000};

}  // namespace

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
  if (result.ok()) made_.push_back(result->inode);
  return Answer(result);
}

std::string Stepper::Answer(const Result<Attributes>& result) {
  if (!result.ok()) return Answer(result.status());
  touched_.push_back(result->inode);
  fs_.Forget(result->inode, 1);
  return Answer(Status::Ok());
}

Result<InodeNumber> Stepper::Find(const std::string& directory, const std::string& name) {
  return FindBelow(kRootInode, {ThreadDirectory(thread_), directory, name});
}

Result<InodeNumber> Stepper::FindBelow(InodeNumber root, const std::vector<std::string>& path) {
  InodeNumber inode = root;
  for (const std::string& part : path) {
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
  touched_.push_back(source);  // the copy may fold the source
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

std::string Stepper::StepOnQuota(const Operation& operation) {
  auto directory = Find("", "");
  if (!directory.ok()) return Answer(directory.status());
  touched_.push_back(*directory);
  if (operation.kind == Kind::kRemoveQuota) return Answer(fs_.quotas()->Remove(*directory));
  // Mostly as many files as the steps make.
  const uint64_t most = operation.data_seed % 4 == 0 ? (uint64_t{1} << 30) + operation.size
                                                     : 1 + operation.data_seed / 4 % 8;
  const WantedLimits limits{.bytes = (uint64_t{1} << 40) + operation.offset, .files = most};
  return Answer(fs_.quotas()->Set(*directory, limits, {}).status());
}

void Stepper::BeginStep() {
  touched_.clear();
  made_.clear();
  last_.IgnoreError("the answer told of it");
  last_ = Status();
  last_.IgnoreError("none yet");
}

std::string Stepper::Step(const Operation& operation) {
  BeginStep();
  if (operation.kind == Kind::kSyncAll) return Answer(fs_.SyncAll());
  if (operation.kind == Kind::kRecompress) return Answer(fs_.maintenance().Recompress().status());
  if (operation.kind == Kind::kCollect)
    return Answer(fs_.maintenance().CollectGarbage(false).status());
  if (operation.kind == Kind::kReopen) return "reopened";
  if (IsOfSnapshots(operation.kind)) return StepOnSnapshot(operation);
  if (IsOfQuotas(operation.kind)) return StepOnQuota(operation);
  if (operation.kind == Kind::kCloneFromSnapshot) return CloneFromSnapshot(operation);
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
  if (operation.kind > Kind::kReopen) return StepOnEntry(operation, *directory, *other);
  return StepOnName(operation, *directory, *other);
}

}  // namespace siltfs::testing
