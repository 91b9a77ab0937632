// Names chunks by SHA-1.
//
// Usually a chunk's name is the SHA-1 of its bytes. If that name is taken by other bytes (the tags
// differ, store/base/chunk_name.h), the chunk gets a salted name: the SHA-1 of a 64-byte prefix
// followed by the bytes. The prefix fills one SHA-1 block:
//
//     0   24  "siltfs salted chunk name" in ASCII
//    24   16  the store's UUID
//    40    1  salt number, 1 to 255
//    41   23  zero
//
// It has to come first. The known collisions are pairs of blocks that lead SHA-1 from one
// particular state to one common state; once there, everything that follows is hashed alike, so a
// salt at the end would leave the two names equal. A salt in front makes the pair start from
// another state, where it means nothing. And a prefix of a whole block leaves the bytes where
// SHA-1's blocks had them, so that nothing depends on how a collision is aligned. The prefix is no
// secret: who knows it can prepare collisions for it at the same great cost, and then the next salt
// number is taken. That two chunks are equal is decided by the tag, whose key is secret, and never
// by a name alone.
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

// Thread-safety: none, as it holds the state of a hash; make one per thread. Movable.
class ChunkNamer {
 public:
  static constexpr size_t kStoreUuidSize = 16;
  using StoreUuid = std::array<uint8_t, kStoreUuidSize>;
  static constexpr size_t kSaltPrefixSize = 64;
  using SaltPrefix = std::array<uint8_t, kSaltPrefixSize>;

  // kUnsupported if the machine's OpenSSL offers no SHA-1, or a wrong one. (A kernel of our own
  // that gives a wrong one is not used.) kInvalidArgument as for Sha1KernelInUse.
  static Result<ChunkNamer> Create(const StoreUuid& store_uuid);

  ChunkNamer(ChunkNamer&&) noexcept;
  ChunkNamer& operator=(ChunkNamer&&) noexcept;
  ~ChunkNamer();

  ChunkName NameOf(ByteView plain);
  // names[i] becomes NameOf(chunks[i]), of several chunks at once where the machine can do that
  // faster (chunker/sha1/kernels.h). The chunks are of any lengths and in any order, as many as
  // there are names, and none overlaps the names.
  void NamesOf(std::span<const ByteView> chunks, std::span<ChunkName> names);
  // salt_number is not 0, which stands for "not salted" where names are stored.
  ChunkName SaltedNameOf(ByteView plain, uint8_t salt_number);

  // What SaltedNameOf puts before the bytes.
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
  const Sha1Kernel* kernel_;  // of NamesOf, all else is OpenSSL's
  // Fetched once, as looking an algorithm up takes a while (0.2 us).
  std::unique_ptr<evp_md_st, FreeDigest> sha1_;
  std::unique_ptr<evp_md_ctx_st, FreeContext> context_;
};

}  // namespace siltfs
