// Reads and writes the two copies of the superblock. superblock.cc encodes their bytes.
#include <algorithm>
#include <array>
#include <utility>

#include "store/env/files.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

bool IsAbsence(const Status& status) {
  return status.Is(StatusCode::kNotFound) || status.Is(StatusCode::kNotADirectory);
}

}  // namespace

std::string SuperblockPath(const std::string& store, int copy) {
  return JoinPath(store, copy == 0 ? "superblock.0" : "superblock.1");
}

std::string UnfinishedStorePath(const std::string& store) {
  return JoinPath(store, "mkfs.unfinished");
}

Status NoStoreAt(Env& env, const std::string& store) {
  const auto mark = env.GetFileInfo(UnfinishedStorePath(store));
  const bool unfinished = mark.ok() && mark->type == FileType::kDirectory;
  return Status(StatusCode::kNotFound, unfinished ? "siltfs mkfs did not finish here: run it again"
                                                  : "there is no siltfs store here")
      .At(store);
}

Result<Superblock> ReadSuperblockCopy(Env& env, const std::string& store, int copy) {
  const std::string path = SuperblockPath(store, copy);
  auto contents = ReadWholeFile(env, path, kSuperblockSize);
  if (!contents.ok()) {
    // A copy that is too long is corrupt, too.
    if (!contents.status().Is(StatusCode::kFileTooLarge)) return std::move(contents).status();
    return Status(StatusCode::kCorruption, std::string(contents.status().cause())).At(path);
  }
  auto superblock = DecodeSuperblock(AsBytes(*contents));
  if (!superblock.ok()) return std::move(superblock).status().At(path);
  return superblock;
}

Result<SuperblockState> ReadSuperblock(Env& env, const std::string& store, StoreAccess access,
                                       StoreContent content) {
  // Read both copies first: if one has another format version, the store needs another siltfs, even
  // if the other copy is valid.
  const std::array<Result<Superblock>, 2> copies = {ReadSuperblockCopy(env, store, 0),
                                                    ReadSuperblockCopy(env, store, 1)};
  SuperblockState state;
  const Status* newer = nullptr;
  const Status* fault = nullptr;
  for (size_t i = 0; i < copies.size(); ++i) {
    const auto& copy = copies[i];
    if (copy.ok()) {
      bool newest = !state.copies_valid[0] || copy->generation > state.superblock.generation;
      if (newest) state.superblock = *copy;
      state.highest_commit = std::max(state.highest_commit, copy->last_commit);
      state.copies_valid[i] = true;
    } else if (copy.status().Is(StatusCode::kNeedsNewer)) {
      newer = &copy.status();
    } else if (!IsAbsence(copy.status()) && fault == nullptr) {
      fault = &copy.status();  // damage or a bad sector: the other copy may be valid
    }
  }
  if (newer != nullptr) return *newer;
  if (!state.copies_valid[0] && !state.copies_valid[1]) {
    if (fault != nullptr) return *fault;
    return NoStoreAt(env, store);
  }
  SILTFS_RETURN_IF_ERROR(CheckFeatures(state.superblock, access, content).At(store));
  return state;
}

Status WriteSuperblock(Env& env, const std::string& store, Superblock& superblock) {
  SILTFS_RETURN_IF_ERROR(ValidateSuperblock(superblock).At(store));
  ++superblock.generation;
  const std::string bytes = EncodeSuperblock(superblock);
  SILTFS_RETURN_IF_ERROR(ReplaceFile(env, SuperblockPath(store, 0), AsBytes(bytes)));
  return ReplaceFile(env, SuperblockPath(store, 1), AsBytes(bytes));
}

}  // namespace siltfs
