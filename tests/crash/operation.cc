#include "tests/crash/operation.h"

#include <fmt/format.h>

#include <array>

#include "store/base/coding.h"

namespace siltfs::testing {
namespace {

using Kind = Operation::Kind;

constexpr uint8_t kLastKind = static_cast<uint8_t>(Kind::kRemoveQuota);
constexpr std::array<const char*, kLastKind + 1> kKindNames = {"create",
                                                               "open",
                                                               "overwrite",
                                                               "write",
                                                               "append",
                                                               "truncate",
                                                               "punch-hole",
                                                               "allocate",
                                                               "copy-range",
                                                               "close",
                                                               "rename",
                                                               "rename-new",
                                                               "exchange",
                                                               "link",
                                                               "unlink",
                                                               "mkdir",
                                                               "rmdir",
                                                               "symlink",
                                                               "mknod",
                                                               "chmod",
                                                               "chown",
                                                               "utimens",
                                                               "setxattr",
                                                               "removexattr",
                                                               "setfacl",
                                                               "fsync",
                                                               "sync",
                                                               "settle",
                                                               "gc",
                                                               "reopen",
                                                               "put",
                                                               "offer",
                                                               "make-temp",
                                                               "place",
                                                               "stream",
                                                               "add-name",
                                                               "set-directory",
                                                               "clone",
                                                               "snapshot",
                                                               "rename-snapshot",
                                                               "delete-snapshot",
                                                               "receive",
                                                               "clone-from-snapshot",
                                                               "roll-back",
                                                               "set-quota",
                                                               "remove-quota"};

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

std::string SnapshotName(unsigned thread, const std::string& name) {
  return ThreadDirectory(thread) + "-" + name;
}

bool IsOfSnapshots(Operation::Kind kind) {
  return kind >= Kind::kSnapshot && kind <= Kind::kRollBack && kind != Kind::kCloneFromSnapshot;
}

bool IsOfQuotas(Operation::Kind kind) {
  return kind == Kind::kSetQuota || kind == Kind::kRemoveQuota;
}

bool ActsOnSlot(Operation::Kind kind) {
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

}  // namespace siltfs::testing
