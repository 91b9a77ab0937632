#include "fs/open/tune_store.h"

#include <algorithm>

#include "fs/open/draw_uuid.h"
#include "fs/open/store_layout.h"

namespace siltfs {
namespace {

Status ChangeCompression(int level, Superblock& superblock) {
  if (level == 0 && superblock.deltas()) {
    return {StatusCode::kInvalidArgument,
            "the store has deltas, which need compression; choose a level of zstd"};
  }
  superblock.compression.codec = level == 0 ? BlockCodecId::kNone : BlockCodecId::kZstd;
  superblock.compression.level = level;
  return Status::Ok();
}

Result<StoreUuid> Choose(Env& env, const UuidChoice& choice, const Superblock& superblock) {
  StoreUuid uuid = choice.given;
  switch (choice.kind) {
    case UuidChoice::Kind::kRandom:
      SILTFS_RETURN_IF_ERROR(DrawUuid(env, uuid));
      break;
    case UuidChoice::Kind::kOriginal:
      uuid = superblock.uuid;
      break;
    case UuidChoice::Kind::kGiven:
      if (uuid == StoreUuid{})
        return Status(StatusCode::kInvalidArgument, "a UUID of zeros means that there is none");
      break;
  }
  return uuid;
}

Status Apply(Env& env, const StoreChanges& changes, Superblock& superblock) {
  if (changes.compression_level)
    SILTFS_RETURN_IF_ERROR(ChangeCompression(*changes.compression_level, superblock));
  if (changes.index_memory) superblock.index_memory = *changes.index_memory;
  StoreUuid shown = superblock.shown_uuid();
  if (changes.uuid) {
    SILTFS_ASSIGN_OR_RETURN(shown, Choose(env, *changes.uuid, superblock));
  }
  superblock.SetIdentity(changes.label.value_or(superblock.label), shown);
  return ValidateSuperblock(superblock);
}

}  // namespace

Result<TunedStore> TuneStore(Env& env, const std::string& store, const StoreChanges& changes) {
  // Read first: where there is no store, no lock is made.
  SILTFS_RETURN_IF_ERROR(ReadSuperblock(env, store).status());
  SILTFS_ASSIGN_OR_RETURN(const auto lock, env.LockFile(LockPath(store)));
  // Read again: the process that had the lock before may have written.
  SILTFS_ASSIGN_OR_RETURN(const SuperblockState state, ReadSuperblock(env, store));
  TunedStore tuned{.before = state.superblock, .after = state.superblock};
  SILTFS_RETURN_IF_ERROR(Apply(env, changes, tuned.after));
  if (tuned.after == tuned.before) return tuned;
  // Both copies are replaced, so none of them may keep a higher commit (I5 in docs/crash-model.md).
  tuned.after.last_commit = std::max(tuned.after.last_commit, state.highest_commit);
  SILTFS_RETURN_IF_ERROR(WriteSuperblock(env, store, tuned.after));
  return tuned;
}

}  // namespace siltfs
