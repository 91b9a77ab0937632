// A segment's file of arbitrary bytes is read in every way. The results must be consistent, and
// memory must stay bounded. Salvage must turn the file into a sealed segment, or refuse the file.
// Deltas are inflated from bases that are made from their tags.
//
// The input: whether metadata lists the segment as sealed, and whether it is salvaged or repaired.
// Then the file.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "store/segment/base_chooser.h"
#include "store/segment/base_source.h"
#include "store/segment/directory_segment_store.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_reader.h"
#include "store/segment/segment_repair.h"
#include "store/segment/segment_rewrite.h"
#include "store/segment/segment_salvage.h"
#include "store/segment/segment_scan.h"
#include "store/segment/segment_writer.h"
#include "tests/fuzz/fuzz_input.h"

namespace siltfs::testing {
namespace {

const std::string kStore = "/store";
const SegmentIdentity kIdentity{StoreUuid{}, 7};
constexpr size_t kMostBytes = 256u << 10;

// Passes a result to `look`. An error is fine, because arbitrary bytes may be refused.
template <typename T, typename Look>
void LookAt(const Result<T>& result, const Look& look) {
  if (result.ok()) return look(*result);
  result.status().IgnoreError("any bytes may be refused");
}

// Bytes made from the tag of the base.
Bytes MakeBase(const BaseRef& base) {
  Bytes bytes(base.length);
  uint64_t state = base.tag;
  for (uint8_t& byte : bytes) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<uint8_t>(state >> 56);
  }
  return bytes;
}

// Has every base except those with an odd tag.
class MadeBases : public BaseSource {
 public:
  Result<BaseBytes> ReadBase(const BaseRef& base) override {
    MustHold(IsBaseLength(base.length), "a base has the length of a chunk");
    if ((base.tag & 1) != 0) return Status(StatusCode::kNotFound, "no such base");
    const auto bytes = std::make_shared<const Bytes>(MakeBase(base));
    return BaseBytes{bytes, *bytes};
  }
};

void LookAtChunks(const DecodedBlock& block, bool with_bases) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < block.chunk_count(); ++i) {
    const uint32_t length = block.records()[i].length;
    const bool missing = block.missing(i) != nullptr;
    MustHold(block.chunk(i).size() == (missing ? 0 : length), "a chunk is whole or missing");
    MustHold(!missing || !block.missing(i)->ok(), "a missing chunk has a reason");
    bytes += length;
  }
  MustHold(bytes == block.head().plain_bytes, "the chunks are the block");
  for (const DeltaBase& delta : block.bases()) {
    MustHold(delta.position < block.chunk_count() && IsBaseLength(delta.base.length),
             "a delta is a chunk of the block");
    MustHold(with_bases || block.missing(delta.position) != nullptr, "a delta needs its base");
  }
}

void LookAtBlock(const SegmentReader& reader, uint32_t offset) {
  LookAt(reader.ReadBlock(offset),
         [](const DecodedBlockPtr& block) { LookAtChunks(*block, /*with_bases=*/false); });
  MadeBases bases;
  LookAt(reader.ReadBlock(offset, kUsualBlockBytes, &bases),
         [](const DecodedBlockPtr& block) { LookAtChunks(*block, /*with_bases=*/true); });
  LookAt(reader.ReadDeltaBases(offset), [](const std::vector<DeltaBase>& deltas) {
    MustHold(deltas.size() <= kMaxBlockChunks, "a delta is a chunk of the block");
  });
  LookAt(reader.ReadBlockHead(offset), [](const BlockHead& head) {
    MustHold(!head.records.empty() && head.segment == kIdentity.id, "a block of this segment");
  });
  LookAt(reader.ReadEncodedBlock(offset), [](const EncodedBlock& block) {
    MustHold(block.plain_bytes <= kMaxBlockPlainBytes, "a block is within the size limit");
  });
}

void LookAtTable(const SegmentReader& reader, const Result<BlockTable>& table) {
  LookAt(table, [&](const BlockTable& blocks) {
    for (const uint32_t ordinal :
         {0u, 1u, blocks.chunk_count / 2, blocks.chunk_count, UINT32_MAX}) {
      const auto found = blocks.Find(ordinal);
      if (found) LookAtBlock(reader, found->place.block_offset);
    }
  });
}

void Read(SimEnv& env) {
  const BlockCodec codec;
  const auto opened = SegmentReader::Open(env, kStore, kIdentity, codec);
  if (!opened.ok()) return opened.status().IgnoreError("any bytes may be refused");
  const SegmentReader& reader = **opened;
  reader.ReadHeader().status().IgnoreError("any bytes may be refused");
  reader.IsSealed().status().IgnoreError("any bytes may be refused");
  LookAt(reader.ReadBaseTable(), [](const std::vector<BaseRef>& bases) {
    for (const BaseRef& base : bases)
      MustHold(IsBaseLength(base.length), "a base has the length of a chunk");
  });
  LookAt(reader.ReadFooter(), [&](const SegmentFooter& footer) {
    MustHold(footer.chunks.size() == footer.trailer.chunk_count &&
                 footer.blocks.size() == footer.trailer.block_count &&
                 footer.bases.size() == footer.trailer.base_count,
             "a footer's tables are as long as it says");
    const auto bases = reader.ReadBaseTable();
    MustHold(bases.ok() && *bases == footer.bases, "the base table is a part of the footer");
    for (const BlockPlace& place : footer.blocks) LookAtBlock(reader, place.block_offset);
  });
  for (const uint32_t first : {0u, 5u, 1u << 19, UINT32_MAX}) {
    LookAt(reader.ReadFooterWindow(first, 1000), [](const std::vector<FooterChunk>& window) {
      MustHold(window.size() <= 1000, "at most the requested entries are returned");
    });
    reader.FindBlock(first).status().IgnoreError("any bytes may be refused");
  }
  LookAtTable(reader, reader.ReadBlockTable());
  LookAtTable(reader, reader.ScanBlockTable());
  for (const uint32_t offset : {0u, kSegmentHeaderSize, 4096u, UINT32_MAX})
    LookAtBlock(reader, offset);
}

void Scan(SimEnv& env, uint64_t committed) {
  const auto file = env.OpenFile(SegmentPath(kStore, kIdentity.id), {.mode = OpenMode::kRead});
  if (!file.ok()) return file.status().IgnoreError("it was removed");
  ScanOptions options;
  options.committed_length = committed;
  options.verify_payloads = true;
  options.on_damage = [](uint64_t begin, uint64_t end, const Status& cause) {
    cause.IgnoreError("the scan continues after the damage");
    MustHold(begin < end, "damage has a length");
    return Status::Ok();
  };
  uint32_t blocks = 0;
  LookAt(ScanBlocks(**file, kIdentity, options,
                    [&](const BlockHead&, uint32_t) {
                      ++blocks;
                      return Status::Ok();
                    }),
         [&](const ScanResult& result) {
           MustHold(result.blocks == blocks, "every block is visited");
         });
}

void Salvage(SimEnv& env, uint64_t committed, bool tolerant) {
  SalvageOptions options;
  options.committed_length = committed;
  if (tolerant) {
    options.on_damage = [](uint64_t, uint64_t, const Status& cause) {
      cause.IgnoreError("damaged bytes stay unchanged");
      return Status::Ok();
    };
  }
  LookAt(SalvageSegment(env, kStore, kIdentity, options), [&](const SalvageResult& result) {
    if (result.outcome == SalvageOutcome::kRemoved) return;
    const BlockCodec codec;
    const auto reader = SegmentReader::Open(env, kStore, kIdentity, codec);
    MustHold(reader.ok(), "a salvaged segment opens");
    const auto footer = (*reader)->ReadFooter();
    MustHold(footer.ok(), "a salvaged segment has a footer");
    MustHold(footer->trailer == result.trailer, "the footer is the reported one");
  });
}

// Rewrites the file, if it is a sealed segment that allows that.
void Rewrite(SimEnv& env) {
  DirectorySegmentStore segments(env, kStore);
  MadeBases bases;
  const BlockCodec codec;
  LookAt(PrepareRewrite(env, kStore, segments, kIdentity, codec,
                        {.compression = {}, .block_plain_bytes = 64u << 10, .bases = &bases}),
         [&](const PreparedRewrite& prepared) {
           if (!prepared.worthwhile) return;
           MustHold(DiscardRewrite(env, kStore, kIdentity.id).ok(), "a new file is discarded");
         });
}

// Repairs the file, and replaces chunks that have lost their base.
void Repair(SimEnv& env) {
  DirectorySegmentStore segments(env, kStore);
  MadeBases bases;
  SegmentRepairOptions options;
  options.bases = &bases;
  options.filler.emplace();
  options.filler->length = 1;
  LookAt(PrepareSegmentRepair(env, kStore, segments, kIdentity, options),
         [&](const PreparedSegmentRepair& prepared) {
           MustHold(
               segments.Replace(kIdentity.id, BuiltReplacement(env, kStore, kIdentity.id)).ok(),
               "the new file is installed");
           const BlockCodec codec;
           const auto reader = SegmentReader::Open(env, kStore, kIdentity, codec);
           MustHold(reader.ok(), "a repaired segment opens");
           const auto footer = (*reader)->ReadFooter();
           MustHold(footer.ok() && footer->trailer == prepared.trailer, "the footer is reported");
         });
}

// A segment in which some chunks are deltas.
Bytes DeltaSeed() {
  SimEnv env;
  MustHold(env.CreateDirectory(kStore).ok() && CreateSegmentsDirectory(env, kStore).ok(),
           "there is a place for segments");
  const BlockCodec codec;
  struct Chooser : BaseChooser {
    Status Choose(const DecodedBlock& block, const BaseChooser::Offer& offer) override {
      for (size_t i = 0; i < block.chunk_count(); i += 2) {
        const ChunkRecord& record = block.records()[i];
        BaseRef base{record.name, record.tag, record.length};
        base.name.bytes[19] ^= 1;
        SILTFS_RETURN_IF_ERROR(offer(i, base, MakeBase(base)));
      }
      return Status::Ok();
    }
  } chooser;
  auto writer = Must(SegmentWriter::Create(env, kStore, kIdentity, SegmentKind::kData, 1));
  for (uint8_t block = 0; block < 3; ++block) {
    PlainBlock plain;
    for (uint8_t i = 0; i < 4; ++i) {
      ChunkRecord record;
      record.name.bytes.fill(static_cast<uint8_t>(block * 16 + i));
      record.tag = 2 * record.name.Prefix64();
      record.length = 300u + i;
      plain.records.push_back(record);
      const Bytes bytes = MakeBase({record.name, record.tag, record.length});
      plain.plain.insert(plain.plain.end(), bytes.begin(), bytes.end());
    }
    const EncodedBlock encoded = Must(codec.Encode(std::move(plain), Compression()));
    MustHold(writer->Append(encoded, block + 1u, 1).ok(), "a block is appended");
  }
  MustHold(writer->Seal().ok(), "the segment is sealed");
  DirectorySegmentStore segments(env, kStore);
  MadeBases bases;
  const PreparedRewrite prepared = Must(PrepareRewrite(
      env, kStore, segments, kIdentity, codec,
      {.compression = {}, .block_plain_bytes = 2000, .bases = &bases, .chooser = &chooser}));
  MustHold(prepared.worthwhile && prepared.deltas == 6, "a seed has deltas");
  MustHold(segments.Replace(kIdentity.id, BuiltReplacement(env, kStore, kIdentity.id)).ok(),
           "the new file is installed");
  const std::string file = Must(ReadWholeFile(env, SegmentPath(kStore, kIdentity.id), kMostBytes));
  return Bytes(file.begin(), file.end());
}

}  // namespace

void RunSegment(FuzzInput input) {
  const uint64_t choice = input.Number(1);
  const ByteView bytes = input.Take(kMostBytes);
  SimEnv env;
  env.SetCapacity(16u << 20);
  MustHold(env.CreateDirectory(kStore).ok() && CreateSegmentsDirectory(env, kStore).ok() &&
               CreateSegmentDirectory(env, kStore, kIdentity.id).ok(),
           "there is a place for segments");
  {
    auto file = env.OpenFile(SegmentPath(kStore, kIdentity.id), {.mode = OpenMode::kCreate});
    MustHold(file.ok() && (*file)->Write(0, bytes).ok(), "the file is written");
  }
  const uint64_t committed = (choice & 1) != 0 ? bytes.size() : bytes.size() / 2;
  Read(env);
  Scan(env, committed);
  Rewrite(env);
  if ((choice & 4) != 0) {
    Repair(env);
  } else {
    Salvage(env, committed, (choice & 2) != 0);
  }
  Read(env);
}

std::vector<Bytes> FuzzSeeds() {
  std::vector<Bytes> seeds;
  for (const bool sealed : {false, true}) {
    for (const bool compressed : {false, true}) {
      SimEnv env;
      MustHold(env.CreateDirectory(kStore).ok() && CreateSegmentsDirectory(env, kStore).ok(),
               "there is a place for segments");
      auto writer = Must(SegmentWriter::Create(env, kStore, kIdentity, SegmentKind::kData, 1));
      const BlockCodec codec;
      for (uint8_t block = 0; block < 4; ++block) {
        PlainBlock plain;
        for (uint8_t i = 0; i < 5; ++i) {
          ChunkRecord record;
          record.name.bytes.fill(static_cast<uint8_t>(block * 16 + i));
          record.tag = record.name.Prefix64();
          record.length = 70u + i;
          record.salt = i == 4 ? 1 : 0;
          plain.records.push_back(record);
          plain.plain.insert(plain.plain.end(), record.length, static_cast<uint8_t>(i));
        }
        Compression compression;
        if (!compressed) compression.codec = BlockCodecId::kNone;
        const EncodedBlock encoded = Must(codec.Encode(std::move(plain), compression));
        MustHold(writer->Append(encoded, block + 1u, 1).ok(), "a block is appended");
      }
      if (sealed) MustHold(writer->Seal().ok(), "the segment is sealed");
      const auto reader = Must(SegmentReader::Open(env, kStore, kIdentity, codec));
      MustHold(reader->ReadBlock(kSegmentHeaderSize).ok() && reader->ReadFooter().ok() == sealed,
               "a seed is read");
      const std::string file = Must(ReadWholeFile(env, writer->path(), kMostBytes));
      for (const uint8_t choice : {1, 2}) {
        seeds.push_back(JoinInput({choice}, AsBytes(file)));
      }
    }
  }
  const Bytes deltas = DeltaSeed();
  for (const uint8_t choice : {1, 2, 4}) seeds.push_back(JoinInput({choice}, deltas));
  return seeds;
}

}  // namespace siltfs::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  siltfs::testing::RunSegment(siltfs::testing::FuzzInput(data, size));
  return 0;
}
