// Names chunks by SHA-1.
//
// Usually a chunk's name is the SHA-1 of its bytes. If other bytes already have that name (the tags
// differ, store/base/chunk_name.h), the chunk gets a salted name: the SHA-1 of a 64-byte prefix
// followed by the bytes. The prefix fills one SHA-1 block:
//
//     0   24  "siltfs salted chunk name" in ASCII
//    24   16  the store's UUID
//    40    1  salt number, 1 to 255
//    41   23  zero
//
// The salt must come first. The known collisions are pairs of blocks that lead SHA-1 from one
// particular state to a common state. After that all further bytes are hashed alike, so a salt at
// the end would leave both names equal. A salt in front starts the pair from another state, where
// it does not collide. A prefix of a whole block keeps the alignment of the bytes to SHA-1's
// blocks, so the alignment of a collision does not matter. The prefix is not secret: an attacker
// can compute collisions for it at the same great cost, and then the next salt number is used. The
// tag, which has a secret key, decides whether two chunks are equal, never a name alone.
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

// Thread-safety: none, since it holds a hash state; make one per thread. Movable.
class ChunkNamer {
 public:
  static constexpr size_t kStoreUuidSize = 16;
  using StoreUuid = std::array<uint8_t, kStoreUuidSize>;
  static constexpr size_t kSaltPrefixSize = 64;
  using SaltPrefix = std::array<uint8_t, kSaltPrefixSize>;

  // kUnsupported if the installed OpenSSL has no SHA-1, or computes it wrongly. (One of our kernels
  // that computes it wrongly is not used.) kInvalidArgument as for Sha1KernelInUse.
  static Result<ChunkNamer> Create(const StoreUuid& store_uuid);

  ChunkNamer(ChunkNamer&&) noexcept;
  ChunkNamer& operator=(ChunkNamer&&) noexcept;
  ~ChunkNamer();

  ChunkName NameOf(ByteView plain);
  // Sets names[i] to NameOf(chunks[i]), for several chunks at once if that is faster on this
  // machine (chunker/sha1/kernels.h). Chunks may have any lengths and order. Requires as many
  // chunks as names, and no overlap of chunks and names.
  void NamesOf(std::span<const ByteView> chunks, std::span<ChunkName> names);
  // salt_number must not be 0, which means "not salted" in stored records.
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
  const Sha1Kernel* kernel_;  // for NamesOf; the rest uses OpenSSL
  // Fetched once, because the lookup of an algorithm takes 0.2 us.
  std::unique_ptr<evp_md_st, FreeDigest> sha1_;
  std::unique_ptr<evp_md_ctx_st, FreeContext> context_;
};

}  // namespace siltfs
