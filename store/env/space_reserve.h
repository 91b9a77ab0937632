// Disk space that a store claims in advance, so that it can finish accepted writes, delete files
// and collect garbage even on a completely full disk. Leaving space free would not suffice, because
// other programs write to the same disk.
//
// The reserve consists of *pieces*: empty files with claimed space (File::Preallocate), in a
// directory of their own. A write that finds the disk full gives up one piece and is retried
// (ReserveEnv does so for every write). So no more space is given up than needed, and other
// programs get as little of it as possible. The reserve is refilled before new data is accepted.
//
// The reserve has parts, so that bulk data does not use up indispensable space. Data (blocks,
// copies, the index) leaves a part to metadata, because a deletion writes metadata before it frees
// space. A flush of metadata, or the replay of its logs after a crash, writes new tables before the
// metadata engine can remove the logs. Removing the logs frees the space again, so each removed
// file refills this part at once (Restore). Data and metadata both leave a part for the next
// opening, in case other programs have filled the disk by then.
//
// If the file system cannot claim space for a file, there are no pieces. In that case CheckRoom and
// Fill require free space for a whole reserve, in addition to spare_bytes.
//
// Thread-safety: every call from any thread. Units: bytes. Errors: kNoSpace as documented;
// CheckRoom and Fill report other failures to make pieces, with their path. Durability: none;
// pieces lost in a crash are made again.
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
    std::string directory;     // of the pieces; created with the first piece
    uint64_t piece_bytes = 0;  // of each piece; the last piece may be smaller
    uint64_t pieces = 0;       // in a full reserve; 0: no reserve
    // Accepting new data leaves this much free beside the reserve.
    uint64_t spare_bytes = 0;
    // The disk counts as nearly full if fewer bytes than this are free, not counting the reserve
    // and spare_bytes.
    uint64_t nearly_full_bytes = 0;
    // Parts of the reserve: one only for opening the store, and one for metadata.
    uint64_t opening_bytes = 0;
    uint64_t metadata_bytes = 0;
  };
  // The purpose of a write.
  enum class Use : uint8_t { kData, kMetadata };
  // The state of the store. In kInUse, data and metadata leave opening_bytes, and data also leaves
  // metadata_bytes. In kOpening and kClosing, metadata may take the whole reserve: the next opening
  // needs no part of it, because a clean close leaves no log to replay. In these two phases data
  // leaves half of metadata_bytes, which suffices to write one table. Data may take the rest, so
  // that a close does not fail because index entries in memory find no space.
  enum class Phase : uint8_t { kOpening, kInUse, kClosing };
  // Options for a disk of this size. The reserve is 1/16 of the disk, but at least 32 and at most
  // 256 MiB. On a small disk it is at most 1/8 of the disk. But if 1/8 of the disk is less than the
  // 16 MiB that opening, metadata and GC need, the limit is 16 MiB or 2/5 of the disk, whichever is
  // less.
  static Options For(uint64_t disk_bytes);
  // Below this disk size the reserve takes more than a quarter of the disk.
  static constexpr uint64_t kLeastUsefulDisk = 64u << 20;
  // Below this disk size the reserve is less than 12.8 MiB, and its parts may be too small to empty
  // a full store.
  static constexpr uint64_t kLeastDisk = 32u << 20;

  // Opens the reserve and adopts existing pieces. `env` must outlive the reserve.
  static Result<std::unique_ptr<SpaceReserve>> Open(Env& env, Options options);

  // OK if `bytes` more may be accepted. kNoSpace unless the reserve is full or can be refilled,
  // with spare_bytes free beside it. Queries the disk once per MiB accepted; after the disk was
  // full, at every call.
  Status CheckRoom(uint64_t bytes) SILTFS_EXCLUDES(mutex_);
  // Like CheckRoom, but always queries the disk; for callers that accept no data.
  Status Fill() SILTFS_EXCLUDES(mutex_);

  // Removes a piece for a write that found the disk full. False if no piece is left for this use.
  bool GiveUpPiece(Use use = Use::kData) SILTFS_EXCLUDES(mutex_);
  // Call it after removing a file. Refills the metadata and opening parts as far as the disk has
  // room, even with less than spare_bytes free.
  void Restore() SILTFS_EXCLUDES(mutex_);
  // The initial phase is kOpening.
  void Enter(Phase phase) { phase_ = phase; }
  // For a store that is closed: reduces the reserve to `bytes`, but not below the space needed to
  // open the store. Keeps all pieces on a nearly full disk.
  void KeepOnly(uint64_t bytes) SILTFS_EXCLUDES(mutex_);

  // Bytes claimed by a full reserve.
  uint64_t whole_bytes() const { return options_.pieces * options_.piece_bytes; }
  // The part of a full reserve that data may take while the store is in use.
  uint64_t data_bytes() const {
    return whole_bytes() - options_.opening_bytes - options_.metadata_bytes;
  }
  // Bytes claimed now.
  uint64_t bytes() const SILTFS_EXCLUDES(mutex_);
  // The part of bytes() that GiveUpPiece may release.
  uint64_t bytes_to_give(Use use = Use::kData) const SILTFS_EXCLUDES(mutex_);
  // The part of `available_bytes` on the disk that new data may use.
  uint64_t Usable(uint64_t available_bytes) const SILTFS_EXCLUDES(mutex_);
  // Whether the disk was nearly full at the last query, or a piece was given up since.
  bool nearly_full() const { return nearly_full_; }
  // Free space that CheckRoom and Fill require beside the reserve.
  uint64_t spare_bytes() const { return options_.spare_bytes; }

  // Whether the path is a directory or does not exist. Open removes any other file.
  static Result<bool> IsDirectoryOrNothing(Env& env, const std::string& directory);
  // Bytes claimed by the pieces in this directory; 0 if it does not exist.
  static Result<uint64_t> BytesIn(Env& env, const std::string& directory);

 private:
  SpaceReserve(Env& env, Options options) : env_(env), options_(std::move(options)) {}

  Status LookAtDisk() SILTFS_REQUIRES(mutex_);
  struct Piece {
    uint64_t number;  // file name
    uint64_t bytes;
  };
  // Adds a piece of this size. Fails with kNoSpace or kUnsupported.
  Status MakePiece(uint64_t bytes) SILTFS_REQUIRES(mutex_);
  // Creates a file and names it with the next free number.
  Result<std::unique_ptr<File>> CreateFile() SILTFS_REQUIRES(mutex_);
  uint64_t ClaimedBytes() const SILTFS_REQUIRES(mutex_);
  uint64_t MissingBytes() const SILTFS_REQUIRES(mutex_);
  std::string PathOf(uint64_t number) const;
  // Bytes of the reserve that GiveUpPiece must leave when called for this use.
  uint64_t KeptFrom(Use use) const;

  Env& env_;
  const Options options_;
  mutable Mutex mutex_;
  std::vector<Piece> pieces_ SILTFS_GUARDED_BY(mutex_);
  uint64_t next_number_ SILTFS_GUARDED_BY(mutex_) = 0;  // for the next piece
  bool unsupported_ SILTFS_GUARDED_BY(mutex_) = false;
  // Bytes accepted since the last query of the disk; set to kLookNextTime to force a query.
  std::atomic<uint64_t> accepted_{UINT64_MAX / 2};
  std::atomic<bool> nearly_full_{false};
  std::atomic<Phase> phase_{Phase::kOpening};
};

}  // namespace siltfs
