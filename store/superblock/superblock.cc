#include "store/superblock/superblock.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/base/checksum.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr std::string_view kMagic = "SILTFSSB";
// The magic number, the version and the checksum have the same offsets in every format version, so
// that DecodeSuperblock can tell a store of another version from a damaged one.
constexpr size_t kChecksumOffset = kSuperblockSize - 8;
constexpr size_t kIdentityOffset = 856;
constexpr size_t kEngineParameterSize = kEngineParameterNameSize + 8;

Status Invalid(std::string cause) { return Status(StatusCode::kInvalidArgument, std::move(cause)); }

Status ValidateSizes(const Superblock& sb) {
  if (sb.chunk_min < kMinChunkSize || sb.chunk_min >= sb.chunk_avg ||
      sb.chunk_avg >= sb.chunk_max || sb.chunk_max > kMaxChunkSize) {
    return Invalid(
        fmt::format("chunk sizes {}, {} and {} do not ascend, or are not between {} and {}",
                    sb.chunk_min, sb.chunk_avg, sb.chunk_max, kMinChunkSize, kMaxChunkSize));
  }
  if (sb.block_plain_bytes < kMinBlockPlainBytes || sb.block_plain_bytes > kMaxBlockPlainBytes) {
    return Invalid(fmt::format("block size {} is not between {} and {}", sb.block_plain_bytes,
                               kMinBlockPlainBytes, kMaxBlockPlainBytes));
  }
  if (sb.segment_bytes < kMinSegmentTargetSize || sb.segment_bytes > kMaxSegmentTargetSize) {
    return Invalid(fmt::format("segment size {} is not between {} and {}", sb.segment_bytes,
                               kMinSegmentTargetSize, kMaxSegmentTargetSize));
  }
  return Status::Ok();
}

Status ValidateEngines(const Superblock& sb) {
  const bool named = !sb.metadata_engine.empty() || !sb.index_parameters.empty();
  if (named && (sb.incompat_features & kIncompatEngines) == 0)
    return Invalid("engines are named, but the feature bit for them is missing");
  if (!sb.metadata_engine.empty() && !IsEngineWord(sb.metadata_engine, kEngineNameSize))
    return Invalid("the metadata engine's name is malformed");
  if (sb.index_parameters.size() > kMostEngineParameters) {
    return Invalid(fmt::format("{} index parameters are more than {}", sb.index_parameters.size(),
                               kMostEngineParameters));
  }
  for (const EngineParameter& parameter : sb.index_parameters) {
    if (!IsEngineWord(parameter.name, kEngineParameterNameSize))
      return Invalid("the name of an index parameter is malformed");
  }
  return Status::Ok();
}

Status ValidateIdentity(const Superblock& sb) {
  const bool named = !sb.label.empty() || sb.chosen_uuid != StoreUuid{};
  if (named && (sb.ro_compat_features & kRoCompatIdentity) == 0)
    return Invalid("there is a label or a chosen UUID, but the feature bit for them is missing");
  return ValidateLabel(sb.label);
}

void EncodeWord(Encoder& out, std::string_view word, size_t size) {
  out.Raw(word.substr(0, size)).Zeros(size - std::min(size, word.size()));
}

// Returns the bytes before the padding, which is zeros. A zero between these bytes stays, and
// ValidateEngines then refuses the word.
std::string DecodeWord(Decoder& in, size_t size) {
  const std::string_view padded = AsText(in.Raw(size));
  return std::string(padded.substr(0, padded.find_last_not_of('\0') + 1));
}

// Encodes kMostEngineParameters parameters; unused ones are zeros.
void EncodeEngines(Encoder& out, const Superblock& sb) {
  EncodeWord(out, sb.metadata_engine, kEngineNameSize);
  const size_t count = std::min(sb.index_parameters.size(), kMostEngineParameters);
  out.U8(static_cast<uint8_t>(count)).Zeros(7);
  for (size_t i = 0; i < count; ++i) {
    EncodeWord(out, sb.index_parameters[i].name, kEngineParameterNameSize);
    out.U64(sb.index_parameters[i].value);
  }
  out.Zeros((kMostEngineParameters - count) * kEngineParameterSize);
}

// Also decodes more than kMostEngineParameters parameters, so that ValidateEngines sees the count
// and refuses it.
void DecodeEngines(Decoder& in, Superblock& sb) {
  sb.metadata_engine = DecodeWord(in, kEngineNameSize);
  const size_t count = in.U8();
  in.Skip(7);
  for (size_t i = 0; i < count; ++i) {
    std::string name = DecodeWord(in, kEngineParameterNameSize);
    sb.index_parameters.push_back({std::move(name), in.U64()});
  }
}

// Decodes the fields between the version and the checksum, in the order of docs/format.md.
Superblock DecodeFields(Decoder& in) {
  Superblock sb;
  sb.compat_features = in.U64();
  sb.ro_compat_features = in.U64();
  sb.incompat_features = in.U64();
  sb.uuid = StoreUuid::FromBytes(in.Raw(StoreUuid::kSize));
  sb.created_ns = in.I64();
  sb.generation = in.U64();
  sb.last_commit = in.U64();
  sb.rabin_polynomial = in.U64();
  sb.chunk_min = in.U32();
  sb.chunk_avg = in.U32();
  sb.chunk_max = in.U32();
  sb.block_plain_bytes = in.U32();
  sb.segment_bytes = in.U32();
  sb.compression.level = static_cast<int32_t>(in.U32());
  sb.compression.codec = static_cast<BlockCodecId>(in.U8());
  sb.index_engine = in.U8();
  sb.clean = in.U8() != 0;
  in.Skip(5);
  sb.index_memory = in.U64();
  ByteView secret = in.Raw(TagKey::kSecretSize);
  std::copy(secret.begin(), secret.end(), sb.tag_secret.begin());
  // An unknown feature may give these bytes another meaning. CheckFeatures refuses a store with
  // such a feature.
  const bool known = (sb.incompat_features & ~kKnownIncompatFeatures) == 0;
  if (known && (sb.incompat_features & kIncompatEngines) != 0) DecodeEngines(in, sb);
  return sb;
}

// `in` begins at kIdentityOffset.
void DecodeIdentity(Decoder in, Superblock& sb) {
  if ((sb.ro_compat_features & kRoCompatIdentity) == 0) return;
  sb.chosen_uuid = StoreUuid::FromBytes(in.Raw(StoreUuid::kSize));
  sb.label = DecodeWord(in, kMostLabelBytes);
}

}  // namespace

Status ValidateLabel(std::string_view label) {
  if (label.size() > kMostLabelBytes) {
    return Invalid(
        fmt::format("the label has {} bytes, and at most {} fit", label.size(), kMostLabelBytes));
  }
  for (const char c : label) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte < 0x20 || byte == 0x7f || c == '/')
      return Invalid("the label has a slash or a control character");
  }
  return Status::Ok();
}

void Superblock::SetIdentity(std::string new_label, const StoreUuid& shown) {
  label = std::move(new_label);
  chosen_uuid = shown == uuid ? StoreUuid{} : shown;
  if (label.empty() && chosen_uuid == StoreUuid{}) {
    ro_compat_features &= ~kRoCompatIdentity;
  } else {
    ro_compat_features |= kRoCompatIdentity;
  }
}

Status ValidateSuperblock(const Superblock& superblock) {
  if (superblock.uuid == StoreUuid{}) return Invalid("the store's uuid is all zero");
  if (superblock.rabin_polynomial == 0) return Invalid("the Rabin polynomial is zero");
  SILTFS_RETURN_IF_ERROR(ValidateSizes(superblock));
  SILTFS_RETURN_IF_ERROR(ValidateEngines(superblock));
  SILTFS_RETURN_IF_ERROR(ValidateIdentity(superblock));
  return ValidateCompression(superblock.compression);
}

std::string EncodeSuperblock(const Superblock& superblock) {
  Encoder out;
  out.Raw(kMagic)
      .U32(kStoreFormatVersion)
      .Zeros(4)
      .U64(superblock.compat_features)
      .U64(superblock.ro_compat_features)
      .U64(superblock.incompat_features)
      .Raw(superblock.uuid.view())
      .I64(superblock.created_ns)
      .U64(superblock.generation)
      .U64(superblock.last_commit)
      .U64(superblock.rabin_polynomial)
      .U32(superblock.chunk_min)
      .U32(superblock.chunk_avg)
      .U32(superblock.chunk_max)
      .U32(superblock.block_plain_bytes)
      .U32(superblock.segment_bytes)
      .U32(static_cast<uint32_t>(superblock.compression.level))
      .U8(static_cast<uint8_t>(superblock.compression.codec))
      .U8(superblock.index_engine)
      .U8(superblock.clean ? 1 : 0)
      .Zeros(5)
      .U64(superblock.index_memory)
      .Raw(superblock.tag_secret);
  EncodeEngines(out, superblock);
  out.Raw(superblock.chosen_uuid.view());
  EncodeWord(out, superblock.label, kMostLabelBytes);
  out.Zeros(kChecksumOffset - out.size());
  out.U64(Checksum(out.view()));
  return out.Take();
}

Result<Superblock> DecodeSuperblock(ByteView bytes) {
  if (bytes.size() != kSuperblockSize) {
    return Status(StatusCode::kCorruption, fmt::format("superblock is {} bytes long, not {}",
                                                       bytes.size(), kSuperblockSize));
  }
  Decoder in(bytes);
  if (AsText(in.Raw(kMagic.size())) != kMagic) {
    return Status(StatusCode::kCorruption, "is not a superblock: the magic number is wrong");
  }
  Decoder stored(bytes.subspan(kChecksumOffset));
  if (stored.U64() != Checksum(bytes.first(kChecksumOffset))) {
    return Status(StatusCode::kCorruption, "superblock has a wrong checksum");
  }
  uint32_t version = in.U32();
  if (version != kStoreFormatVersion) {
    return Status(StatusCode::kNeedsNewer,
                  fmt::format("format version {} is not the one this siltfs understands ({})",
                              version, kStoreFormatVersion));
  }
  in.Skip(4);
  Superblock superblock = DecodeFields(in);
  // An unknown feature may allow other field values, so they are not validated. CheckFeatures
  // refuses this store.
  if ((superblock.incompat_features & ~kKnownIncompatFeatures) != 0) return superblock;
  DecodeIdentity(Decoder(bytes.subspan(kIdentityOffset)), superblock);
  Status valid = ValidateSuperblock(superblock);
  if (!valid.ok()) {
    return Status(StatusCode::kCorruption, fmt::format("superblock: {}", valid.cause()));
  }
  return superblock;
}

Status CheckFeatures(const Superblock& superblock, StoreAccess access, StoreContent content) {
  uint64_t incompat = superblock.incompat_features & ~kKnownIncompatFeatures;
  if (incompat != 0) {
    return Status(
        StatusCode::kNeedsNewer,
        fmt::format("the store uses features that this siltfs doesn't know (incompat {:#x})",
                    incompat));
  }
  uint64_t ro_compat = superblock.ro_compat_features & ~kKnownRoCompatFeatures;
  if (ro_compat != 0 && access == StoreAccess::kReadWrite) {
    return Status(
        StatusCode::kNeedsNewer,
        fmt::format("the store uses features that this siltfs can only read (ro-compat {:#x})",
                    ro_compat));
  }
  if (superblock.chunks_only() && content != StoreContent::kChunksOnly) {
    return Status(StatusCode::kUnsupported,
                  "the store has chunks of a program and no files; only programs with the library "
                  "of siltfs-dev can use it");
  }
  if (!superblock.chunks_only() && content == StoreContent::kChunksOnly) {
    return Status(StatusCode::kUnsupported,
                  "the store has files, so it can be mounted, but not opened as a store of chunks");
  }
  return Status::Ok();
}

}  // namespace siltfs
