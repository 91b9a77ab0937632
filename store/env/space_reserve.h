// Disk space that a store keeps claimed, so that it can go on with what it has accepted, delete and
// collect garbage on a disk that is full to the last byte, whoever filled it. A number that says
// how much should stay free would not do: others write to the same disk.
//
// The reserve is made of *pieces*, files of a directory of its own that hold nothing and have their
// space claimed (File::Preallocate). Who finds the disk full gives up one piece, and tries again
// (ReserveEnv does so for every write); so no more is given up than is needed, and others get hold
// of as little as possible. It is filled up again before anything new is accepted.
//
// It has parts, so that what is written in bulk does not take what the store cannot do without. Data
// (blocks, copies, the index) leaves a part to metadata, without which nothing can be deleted: a
// flush, and the replay of its logs after a crash, write tables before the logs can go. As that
// gives back what it takes, each file that is removed fills this part again at once (Restore). Both
// leave a part for the next opening, should others fill the disk meanwhile.
//
// Where the disk cannot claim space for a file, the reserve is a number after all: so much is left
// free.
//
// Thread-safety: every call from any thread. Units: bytes. Errors: kNoSpace as said; failures to
// make or remove pieces other than for want of space are CheckRoom's answer, with their path.
// Durability: none; a crash may lose pieces, which are made again.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/base/thread_annotations.h"
#include "store/env/env.h"

namespace siltfs {

class SpaceReserve {
 public:
  struct Options {
    std::string store;         // a path on the disk
    std::string directory;     // of the pieces; made when the first one is
    uint64_t piece_bytes = 0;  // of each, the last one that is made may be smaller
    uint64_t pieces = 0;       // of a whole reserve; 0: none is kept
    // Of the disk; what is accepted leaves so much free beside the reserve.
    uint64_t spare_bytes = 0;
    // With less than this free beside those, the disk is nearly full.
    uint64_t nearly_full_bytes = 0;
    // Of the reserve, what is for opening the store alone, and what for metadata besides.
    uint64_t opening_bytes = 0;
    uint64_t metadata_bytes = 0;
  };
  // What a write is for.
  enum class Use : uint8_t { kData, kMetadata };
  // What the store is doing. While it is in use both leave opening_bytes, and data leaves
  // metadata_bytes, too. While it is opened, and closed, which in good order leaves no log to read
  // back, metadata may have all, and data leaves half of metadata_bytes: there is one table to be
  // written, and what the index still holds in memory is not to keep the store from being closed.
  enum class Phase : uint8_t { kOpening, kInUse, kClosing };
  // For a disk of this size: a sixteenth of it, 32 to 256 MiB, but at most an eighth; 16 MiB at
  // least, which opening, metadata and collecting take, but at most two fifths.
  static Options For(uint64_t disk_bytes);
  // Of a disk below this size the reserve takes more than a quarter.
  static constexpr uint64_t kLeastUsefulDisk = 64u << 20;
  // Below this size the reserve is less than 12 MiB, and its parts may not do to empty a full store.
  static constexpr uint64_t kLeastDisk = 32u << 20;

  // Takes over the pieces that are there. `env` must outlive it.
  static Result<std::unique_ptr<SpaceReserve>> Open(Env& env, Options options);

  // Whether so many bytes more may be accepted: kNoSpace unless the reserve is whole, or can be
  // made so, and there are spare_bytes beside it. Looks at the disk once in a while, and always
  // when it was full the last time.
  Status CheckRoom(uint64_t bytes) SILTFS_EXCLUDES(mutex_);
  // The same, and always looks; for whoever has nothing to accept.
  Status Fill() SILTFS_EXCLUDES(mutex_);

  // Gives up a piece to a write that has found the disk full. False if there is none for this use.
  bool GiveUpPiece(Use use = Use::kData) SILTFS_EXCLUDES(mutex_);
  // After something was removed: makes the parts of metadata and of opening whole again, as far as
  // the disk has room, also with less than spare_bytes free.
  void Restore() SILTFS_EXCLUDES(mutex_);
  // At first the store is being opened.
  void Enter(Phase phase) { phase_ = phase; }
  // For a store that is closed: keeps so much, and what opening it takes at least, or all on a disk
  // that is nearly full.
  void KeepOnly(uint64_t bytes) SILTFS_EXCLUDES(mutex_);

  // What a whole reserve claims.
  uint64_t whole_bytes() const { return options_.pieces * options_.piece_bytes; }
  // Of that, what data may take while the store is in use.
  uint64_t data_bytes() const {
    return whole_bytes() - options_.opening_bytes - options_.metadata_bytes;
  }
  // What is claimed now.
  uint64_t bytes() const SILTFS_EXCLUDES(mutex_);
  // Of that, what GiveUpPiece may give.
  uint64_t bytes_to_give(Use use = Use::kData) const SILTFS_EXCLUDES(mutex_);
  // Of a disk that has so much available, what may be used for what is new.
  uint64_t Usable(uint64_t available_bytes) const SILTFS_EXCLUDES(mutex_);
  // Whether the disk was nearly full when it was last looked at, or a piece given up since.
  bool nearly_full() const { return nearly_full_; }
  // What CheckRoom and Fill want left free.
  uint64_t spare_bytes() const { return options_.spare_bytes; }

  // False if something else stands in the directory's place; Open removes that.
  static Result<bool> IsDirectoryOrNothing(Env& env, const std::string& directory);
  // What pieces in this directory claim; 0 if there is none.
  static Result<uint64_t> BytesIn(Env& env, const std::string& directory);

 private:
  SpaceReserve(Env& env, Options options) : env_(env), options_(std::move(options)) {}

  Status LookAtDisk() SILTFS_REQUIRES(mutex_);
  struct Piece {
    uint64_t number;  // its name
    uint64_t bytes;
  };
  // kNoSpace, kUnsupported.
  Status MakePiece(uint64_t bytes) SILTFS_REQUIRES(mutex_);
  // Under the next number that is free.
  Result<std::unique_ptr<File>> CreateFile() SILTFS_REQUIRES(mutex_);
  uint64_t ClaimedBytes() const SILTFS_REQUIRES(mutex_);
  uint64_t MissingBytes() const SILTFS_REQUIRES(mutex_);
  std::string PathOf(uint64_t number) const;
  // What GiveUpPiece leaves.
  uint64_t KeptFrom(Use use) const;

  Env& env_;
  const Options options_;
  mutable Mutex mutex_;
  std::vector<Piece> pieces_ SILTFS_GUARDED_BY(mutex_);
  uint64_t next_number_ SILTFS_GUARDED_BY(mutex_) = 0;  // of pieces that this object makes
  bool unsupported_ SILTFS_GUARDED_BY(mutex_) = false;
  // Accepted since the disk was last looked at; as much as can be accepted without, if it is to be
  // looked at the next time.
  std::atomic<uint64_t> accepted_{UINT64_MAX / 2};
  std::atomic<bool> nearly_full_{false};
  std::atomic<Phase> phase_{Phase::kOpening};
};

}  // namespace siltfs
