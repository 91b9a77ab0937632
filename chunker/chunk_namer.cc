#include "chunker/chunk_namer.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <string_view>

#include "chunker/sha1/kernels.h"

namespace siltfs {

namespace {

constexpr std::string_view kSaltText = "siltfs salted chunk name";
constexpr size_t kUuidOffset = 24;
constexpr size_t kSaltNumberOffset = kUuidOffset + ChunkNamer::kStoreUuidSize;
static_assert(kSaltText.size() == kUuidOffset && kSaltNumberOffset < ChunkNamer::kSaltPrefixSize);

// FIPS 180-4's example: the SHA-1 of "abc".
constexpr ChunkName kNameOfAbc = {{0xa9, 0x99, 0x3e, 0x36, 0x47, 0x06, 0x81, 0x6a, 0xba, 0x3e,
                                   0x25, 0x71, 0x78, 0x50, 0xc2, 0x6c, 0x9c, 0xd0, 0xd8, 0x9d}};

}  // namespace

void ChunkNamer::FreeDigest::operator()(evp_md_st* digest) const { EVP_MD_free(digest); }
void ChunkNamer::FreeContext::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

ChunkNamer::ChunkNamer(const StoreUuid& store_uuid, const Sha1Kernel& kernel)
    : store_uuid_(store_uuid),
      kernel_(&kernel),
      sha1_(EVP_MD_fetch(nullptr, "SHA1", nullptr)),
      context_(EVP_MD_CTX_new()) {}

ChunkNamer::ChunkNamer(ChunkNamer&&) noexcept = default;
ChunkNamer& ChunkNamer::operator=(ChunkNamer&&) noexcept = default;
ChunkNamer::~ChunkNamer() = default;

Result<ChunkNamer> ChunkNamer::Create(const StoreUuid& store_uuid) {
  SILTFS_ASSIGN_OR_RETURN(const Sha1Kernel* kernel, Sha1KernelInUse());
  ChunkNamer namer(store_uuid, *kernel);
  ChunkName name;
  if (namer.sha1_ == nullptr || namer.context_ == nullptr ||
      !namer.Hash({}, AsBytes("abc"), name)) {
    return Status(StatusCode::kUnsupported, "OpenSSL on this machine offers no SHA-1");
  }
  if (name != kNameOfAbc)
    return Status(StatusCode::kUnsupported, "OpenSSL on this machine computes a wrong SHA-1");
  return namer;
}

ChunkName ChunkNamer::NameOf(ByteView plain) { return MustHash({}, plain); }

void ChunkNamer::NamesOf(std::span<const ByteView> chunks, std::span<ChunkName> names) {
  assert(chunks.size() == names.size());
  if (kernel_->IsWorth(chunks)) {
    Sha1Batch(*kernel_, chunks, names);
    return;
  }
  for (size_t i = 0; i < chunks.size(); ++i) names[i] = NameOf(chunks[i]);
}

ChunkName ChunkNamer::SaltedNameOf(ByteView plain, uint8_t salt_number) {
  return MustHash(MakeSaltPrefix(store_uuid_, salt_number), plain);
}

ChunkNamer::SaltPrefix ChunkNamer::MakeSaltPrefix(const StoreUuid& store_uuid,
                                                  uint8_t salt_number) {
  assert(salt_number != 0);
  SaltPrefix prefix{};
  std::copy(kSaltText.begin(), kSaltText.end(), prefix.begin());
  std::copy(store_uuid.begin(), store_uuid.end(), prefix.begin() + kUuidOffset);
  prefix[kSaltNumberOffset] = salt_number;
  return prefix;
}

bool ChunkNamer::Hash(ByteView prefix, ByteView plain, ChunkName& name) {
  unsigned int size = 0;
  return EVP_DigestInit_ex2(context_.get(), sha1_.get(), nullptr) == 1 &&
         EVP_DigestUpdate(context_.get(), prefix.data(), prefix.size()) == 1 &&
         EVP_DigestUpdate(context_.get(), plain.data(), plain.size()) == 1 &&
         EVP_DigestFinal_ex(context_.get(), name.bytes.data(), &size) == 1 &&
         size == ChunkName::kSize;
}

// After the hash in Create the context has all its memory, so hashing should not fail. If it fails,
// the process aborts: it has no name to continue with, and a wrong name would lose data.
ChunkName ChunkNamer::MustHash(ByteView prefix, ByteView plain) {
  ChunkName name;
  if (!Hash(prefix, plain, name)) std::abort();
  return name;
}

}  // namespace siltfs
