#include "index/silt/store_manifest.h"

#include <fmt/format.h>

#include "index/silt/cuckoo_table.h"
#include "index/silt/log_page.h"
#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kMagic = "SILTIDX\n";
constexpr uint32_t kVersion = 1;
constexpr size_t kChecksumSize = 8;
constexpr uint64_t kMaxFileSize = 16U << 20;
constexpr std::string_view kFileName = "manifest";

Status Damaged(std::string cause) { return {StatusCode::kCorruption, std::move(cause)}; }

void EncodeLogRecord(Encoder& out, const LogRecord& log) {
  out.U64(log.id).U32(log.page_count).U8(static_cast<uint8_t>(log.bucket_bits)).Zeros(3);
  out.U32(static_cast<uint32_t>(log.damaged_pages.size()));
  for (uint32_t page : log.damaged_pages) out.U32(page);
}

Result<LogRecord> DecodeLogRecord(Decoder& in) {
  LogRecord log;
  log.id = in.U64();
  log.page_count = in.U32();
  log.bucket_bits = in.U8();
  in.Skip(3);
  const uint32_t damaged = in.U32();
  if (!in.ok() || damaged > in.remaining() / 4) return Damaged("ends within a log's record");
  if (log.bucket_bits < 1 || log.bucket_bits > CuckooTable::kMaxBucketBits) {
    return Damaged(fmt::format("gives log {} 2^{} buckets", log.id, log.bucket_bits));
  }
  if (log.page_count > kMaxLogPages) {
    return Damaged(fmt::format("gives log {} {} pages", log.id, log.page_count));
  }
  log.damaged_pages.reserve(damaged);
  for (uint32_t i = 0; i < damaged; ++i) {
    const uint32_t page = in.U32();
    const bool rises = log.damaged_pages.empty() || page > log.damaged_pages.back();
    if (!rises || page >= log.page_count) {
      return Damaged(fmt::format("lists damaged pages of log {} wrongly", log.id));
    }
    log.damaged_pages.push_back(page);
  }
  return log;
}

}  // namespace

std::string EncodeStoreManifest(const StoreManifest& manifest) {
  Encoder out;
  out.Raw(kMagic).U32(kVersion).U32(0);
  out.U64(manifest.hash_secret).U64(manifest.complete_sequence).U64(manifest.next_log_id);
  out.U32(static_cast<uint32_t>(manifest.logs.size())).U32(0);
  for (const LogRecord& log : manifest.logs) EncodeLogRecord(out, log);
  out.U64(Checksum(out.view()));
  return out.Take();
}

Result<StoreManifest> DecodeStoreManifest(ByteView bytes) {
  if (bytes.size() < kChecksumSize) return Damaged("is too short for a manifest");
  const size_t checked = bytes.size() - kChecksumSize;
  if (Decoder(bytes.subspan(checked)).U64() != Checksum(bytes.first(checked))) {
    return Damaged("has a wrong checksum");
  }
  Decoder in(bytes.first(checked));
  if (AsText(in.Raw(kMagic.size())) != kMagic) return Damaged("is no manifest of a SILT index");
  const uint32_t version = in.U32();
  if (in.ok() && version != kVersion) {
    return Status(StatusCode::kNeedsNewer, fmt::format("is a SILT index of version {}", version));
  }
  in.Skip(4);
  StoreManifest manifest;
  manifest.hash_secret = in.U64();
  manifest.complete_sequence = in.U64();
  manifest.next_log_id = in.U64();
  const uint32_t count = in.U32();
  in.Skip(4);
  for (uint32_t i = 0; in.ok() && i < count; ++i) {
    SILTFS_ASSIGN_OR_RETURN(LogRecord log, DecodeLogRecord(in));
    const bool rises = manifest.logs.empty() || log.id > manifest.logs.back().id;
    if (!rises || log.id >= manifest.next_log_id) {
      return Damaged(fmt::format("lists log {} out of order", log.id));
    }
    manifest.logs.push_back(std::move(log));
  }
  if (!in.Done()) return Damaged("has a wrong length");
  if (manifest.logs.empty()) return Damaged("lists no log");
  if (manifest.logs.back().page_count != 0) return Damaged("ends with a frozen log");
  return manifest;
}

Result<std::optional<StoreManifest>> ReadStoreManifest(Env& env, const std::string& directory) {
  const std::string path = JoinPath(directory, kFileName);
  Result<std::string> contents = ReadWholeFile(env, path, kMaxFileSize);
  if (!contents.ok()) {
    if (contents.status().Is(StatusCode::kNotFound)) return std::optional<StoreManifest>();
    if (contents.status().Is(StatusCode::kFileTooLarge)) {
      return Damaged("is too large for a manifest").At(path);
    }
    return std::move(contents).status();
  }
  Result<StoreManifest> manifest = DecodeStoreManifest(AsBytes(*contents));
  if (!manifest.ok()) return std::move(manifest).status().At(path);
  return std::optional<StoreManifest>(std::move(*manifest));
}

Status WriteStoreManifest(Env& env, const std::string& directory, const StoreManifest& manifest) {
  return ReplaceFile(env, JoinPath(directory, kFileName), AsBytes(EncodeStoreManifest(manifest)));
}

}  // namespace siltfs
