// A deduplicating, compressing store of chunks in a directory, for programs: the part of siltfs
// below its files. Installed as <siltfs/chunks.h>; docs/library.md has an example and the limits.
//
// A chunk is up to MakeOptions::chunk_max bytes. Put stores it, if no equal chunk is stored yet,
// and gives it a name; Get returns its bytes. The program keeps the names. Chunks are never
// removed: a program that no longer needs some copies the others to a new store. Store::Cut cuts
// content into chunks at points that depend on the content, so that contents with equal parts share
// chunks.
//
// Such a store holds no files: siltfs does not mount, check or collect it.
//
// Thread-safety: every call of a Store from any thread, except that Close and the destructor must
// be the only calls that run. Ownership: a Store owns its directory's lock until it is closed; the
// spans are borrowed during a call. Several stores may be open at the same time. After fork(2), the
// child must not use the Store.
//
// Errors: an Error is false if the call has succeeded. Its message is one sentence for the user.
// kNoSpace: the disk is full; the call may be repeated when it has room. After another failed write
// every Put, Sync and Close fails with kReadOnly, and Get still works. Exceptions: only
// std::bad_alloc.
//
// Durability: chunks that were put before Sync or Close survive a crash once this call has
// succeeded. Others may be lost, too, even if later ones survive.
//
// Stability: the interface keeps its meaning within a minor version (0.1.x). The layout of its
// types is not kept, because the library is linked statically.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace siltfs::chunks {

enum class ErrorCode {
  kNone,
  kNotFound,         // no store in this directory, or no such chunk
  kInvalidArgument,  // a chunk of impossible length, impossible options
  kNotEmpty,         // Make: the directory has files
  kInUse,            // another process, or another Store, has it open
  kNeedsNewer,       // a newer version of siltfs has made the store
  kWrongContent,     // the store holds files; siltfs mounts it
  kCorruption,       // stored bytes are damaged; Get never returns wrong bytes
  kNoSpace,          // the disk is full
  kReadOnly,         // opened read-only, or an earlier write has failed
  kClosed,           // the Store is closed
  kFailed,           // another error of the system; the message has the cause
};

class [[nodiscard]] Error {
 public:
  Error() = default;
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  explicit operator bool() const { return code_ != ErrorCode::kNone; }
  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  ErrorCode code_ = ErrorCode::kNone;
  std::string message_;
};

// Names a stored chunk, in one store: the SHA-1 of its bytes (of a prefix and its bytes, if the
// store has another chunk with this SHA-1), and its length.
struct Name {
  std::array<uint8_t, 20> digest{};
  uint32_t length = 0;  // bytes

  auto operator<=>(const Name&) const = default;
  std::string ToHex() const;  // of the digest
};

// Chosen when a store is made, and kept in it.
struct MakeOptions {
  // Bytes. A chunk has at most chunk_max of them. The minimum and the average are those of Cut; it
  // needs chunk_min >= 64, chunk_avg >= 2 chunk_min, chunk_max >= 2 chunk_avg, chunk_max <= 1 MiB.
  uint32_t chunk_min = 2u << 10;
  uint32_t chunk_avg = 8u << 10;
  uint32_t chunk_max = 64u << 10;
  int compression_level = 3;          // zstd's; 0: no compression
  uint64_t index_memory = 44u << 20;  // bytes of memory for the index of names, about
};

struct OpenOptions {
  bool read_only = false;  // changes nothing on the disk, also after a crash
  // Called from any thread with a sentence about damage or a failure that no call returns. May be
  // empty.
  std::function<void(std::string_view)> report;
};

struct Totals {
  uint64_t chunks = 0;        // distinct
  uint64_t plain_bytes = 0;   // of these chunks, uncompressed
  uint64_t stored_bytes = 0;  // on the disk, without the index and metadata
};

class Store {
 public:
  // Makes an empty store, durably. The directory must be missing or empty.
  static Error Make(const std::string& directory, const MakeOptions& options = {});
  // Opens a store, after a crash with all synced chunks, and sets `store`.
  static Error Open(const std::string& directory, std::unique_ptr<Store>& store,
                    const OpenOptions& options = {});
  // Ends an open Store as a crash would: chunks that are not durable are lost.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Stores chunks of 1 to chunk_max bytes, and sets names[i] to the name of chunks[i]. A call with
  // some hundred chunks is faster than a call for each. `names` is as long as `chunks`.
  Error Put(std::span<const std::span<const uint8_t>> chunks, std::span<Name> names);
  Error Put(std::span<const uint8_t> chunk, Name& name);
  // Reads and verifies a chunk. Chunks that were put together are read fast together. A name that
  // the index does not have is searched in all segments, which takes long in a large store.
  Error Get(const Name& name, std::vector<uint8_t>& bytes);

  // The lengths of the chunks of `content`, in order; their sum is the content's length. The cut
  // points differ from store to store, because each store has a polynomial of its own.
  std::vector<uint32_t> Cut(std::span<const uint8_t> content) const;

  Error Sync();
  Totals totals() const;

  // Makes everything durable and closes the store, also if it fails. Only after kNoSpace the store
  // may stay open, and the call may be repeated; other calls must not follow. If the repeated call
  // returns kClosed, the store was closed as by a crash.
  Error Close();

 private:
  class Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace siltfs::chunks
