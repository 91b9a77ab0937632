#include "fs/replication/resume_token.h"

#include "fs/records/snapshot_id_coding.h"
#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/base/hex_text.h"

namespace siltfs {
namespace {

constexpr std::string_view kPrefix = "siltfs-1-";

Status Malformed() {
  return {StatusCode::kInvalidArgument,
          "this is no token of an unfinished transfer; `siltfs receive --token` prints one"};
}

}  // namespace

std::string ResumeToken::ToText() const {
  Encoder out;
  EncodeSnapshotId(out, snapshot);
  out.U8(base ? 1 : 0);
  if (base) EncodeSnapshotId(out, *base);
  out.Raw(position);
  std::string bytes = out.Take();
  bytes += Encoder().U64(Checksum(AsBytes(bytes))).Take();
  return std::string(kPrefix) + ToHex(bytes);
}

Result<ResumeToken> ResumeToken::FromText(std::string_view text) {
  if (!text.starts_with(kPrefix)) return Malformed();
  const auto bytes = FromHex(text.substr(kPrefix.size()));
  if (!bytes || bytes->size() < sizeof(uint64_t)) return Malformed();
  const std::string_view content =
      std::string_view(*bytes).substr(0, bytes->size() - sizeof(uint64_t));
  if (Decoder(AsBytes(std::string_view(*bytes).substr(content.size()))).U64() !=
      Checksum(AsBytes(content)))
    return Malformed();
  Decoder in(AsBytes(content));
  ResumeToken token;
  token.snapshot = DecodeSnapshotId(in);
  const uint8_t has_base = in.U8();
  if (has_base == 1) token.base = DecodeSnapshotId(in);
  if (!in.ok() || has_base > 1) return Malformed();
  token.position = content.substr(content.size() - in.remaining());
  return token;
}

}  // namespace siltfs
