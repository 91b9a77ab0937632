// Names chunks by SHA-1.
//
// Usually a chunk's name is the SHA-1 of its bytes. If a chunk with other bytes already has that
// name (their tags differ, store/base/chunk_name.h), the new chunk gets a salted name: the SHA-1 of
// a 64-byte prefix followed by the bytes. The prefix fills one SHA-1 block:
//
//     0   24  "siltfs salted chunk name" in ASCII
//    24   16  the store's UUID
//    40    1  salt number, 1 to 255
//    41   23  zero
//
// The salt must come first. The known collisions consist of two different runs of blocks that lead
// SHA-1 from one particular state to the same state. SHA-1 hashes equal bytes after these runs
// alike, so with a salt at the end both names would stay equal. With a salt in front, SHA-1 begins
// both runs in another state, from which they do not collide. The prefix is a whole block, so the
// bytes keep their alignment to SHA-1's blocks: only the state before them differs. The prefix is
// not secret, so an attacker can compute collisions for a salted name at the same great cost. The
// new chunk then gets a name with the next salt number. A name alone never decides whether two
// chunks are equal; the tag decides it, and the key of the tags is secret.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "store/base/bytes.h"
#include "store/base/chunk_name.h"
#include "store/base/result.h"

struct evp_md_ctx_st;
struct evp_md_st;

namespace siltfs {

struct Sha1Kernel;

// Thread-safety: none, because the object holds a hash state; make one per thread. Movable.
class ChunkNamer {
 public:
  static constexpr size_t kStoreUuidSize = 16;
  using StoreUuid = std::array<uint8_t, kStoreUuidSize>;
  static constexpr size_t kSaltPrefixSize = 64;
  using SaltPrefix = std::array<uint8_t, kSaltPrefixSize>;

  // Makes a namer for the store. kUnsupported if the installed OpenSSL has no SHA-1, or computes it
  // wrongly. (A kernel of siltfs that computes SHA-1 wrongly is not used.) kInvalidArgument as for
  // Sha1KernelInUse.
  static Result<ChunkNamer> Create(const StoreUuid& store_uuid);

  ChunkNamer(ChunkNamer&&) noexcept;
  ChunkNamer& operator=(ChunkNamer&&) noexcept;
  ~ChunkNamer();

  ChunkName NameOf(ByteView plain);
  // Sets names[i] to NameOf(chunks[i]). Hashes several chunks at once if that is faster on this
  // machine (chunker/sha1/kernels.h). Chunks may have any lengths and order. Requires as many
  // chunks as names, and no overlap of chunks and names.
  void NamesOf(std::span<const ByteView> chunks, std::span<ChunkName> names);
  // The salted name of the bytes. salt_number must not be 0, which means "not salted" in stored
  // records.
  ChunkName SaltedNameOf(ByteView plain, uint8_t salt_number);

  // The prefix that SaltedNameOf hashes before the bytes.
  static SaltPrefix MakeSaltPrefix(const StoreUuid& store_uuid, uint8_t salt_number);

 private:
  struct FreeDigest {
    void operator()(evp_md_st* digest) const;
  };
  struct FreeContext {
    void operator()(evp_md_ctx_st* context) const;
  };

  ChunkNamer(const StoreUuid& store_uuid, const Sha1Kernel& kernel);
  bool Hash(ByteView prefix, ByteView plain, ChunkName& name);
  ChunkName MustHash(ByteView prefix, ByteView plain);

  StoreUuid store_uuid_;
  const Sha1Kernel* kernel_;  // used by NamesOf; the other functions use OpenSSL
  // Fetched once, because the lookup of an algorithm takes 0.2 us.
  std::unique_ptr<evp_md_st, FreeDigest> sha1_;
  std::unique_ptr<evp_md_ctx_st, FreeContext> context_;
};

}  // namespace siltfs
