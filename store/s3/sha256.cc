#include "store/s3/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <new>

#include "store/base/hex_text.h"

namespace siltfs {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

// OpenSSL fails here only for want of memory.
Sha256::Sha256() : state_(std::make_unique<State>()) {
  if (state_->context == nullptr ||
      EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) != 1) {
    throw std::bad_alloc();
  }
}

Sha256::~Sha256() = default;

void Sha256::Add(ByteView bytes) { EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()); }

Sha256Digest Sha256::Finish() {
  Sha256Digest digest{};
  EVP_DigestFinal_ex(state_->context, digest.data(), nullptr);
  return digest;
}

Sha256Digest Sha256Of(ByteView bytes) {
  Sha256 hash;
  hash.Add(bytes);
  return hash.Finish();
}

Sha256Digest HmacSha256(ByteView key, std::string_view text) {
  Sha256Digest digest{};
  const ByteView bytes = AsBytes(text);
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes.data(), bytes.size(),
           digest.data(), nullptr) == nullptr) {
    throw std::bad_alloc();
  }
  return digest;
}

std::string HexOf(const Sha256Digest& digest) { return ToHex(AsText(digest)); }

std::string Base64Of(const Sha256Digest& digest) {
  std::string text(45, '\0');  // 44 characters, and the zero that OpenSSL writes behind them
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), digest.data(),
                  static_cast<int>(digest.size()));
  text.pop_back();
  return text;
}

}  // namespace siltfs
