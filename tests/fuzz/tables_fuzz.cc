// The in-memory tables of SILT's stores are decoded from any bytes. Lookups in an accepted table
// are safe, and return only blocks or slots that the store has.
//
// The input: the kind of table, its parameter, then its bytes.
#include <algorithm>

#include "index/flash/cuckoo_filter.h"
#include "index/flash/slot.h"
#include "index/silt/run_filter.h"
#include "index/silt/trie_builder.h"
#include "index/silt/trie_index.h"
#include "store/base/random.h"
#include "tests/fuzz/fuzz_input.h"

namespace siltfs::testing {
namespace {

constexpr int kLookups = 200;
constexpr unsigned kBucketBits = 4;

ChunkName RandomName(Random& random) {
  ChunkName name;
  random.Fill(name.bytes);
  return name;
}

void LookUpInTrie(ByteView bytes) {
  const auto trie = TrieIndex::Decode(bytes);
  if (!trie.ok()) return trie.status().IgnoreError("any bytes may be refused");
  MustHold(trie->blocks() <= trie->entries(), "a block has an entry");
  Random random(1);
  for (int i = 0; i < kLookups; ++i) {
    const uint32_t block = trie->Lookup(RandomName(random));
    MustHold(block < trie->blocks() || (block == 0 && trie->blocks() == 0), "a block of the trie");
  }
  Encoder out;
  trie->Encode(out);
  MustHold(TrieIndex::Decode(out.view()).ok(), "an encoded trie is decoded");
}

void LookUpInFilter(unsigned bucket_bits, ByteView bytes) {
  const auto filter = CuckooFilter::Decode(bucket_bits, bytes);
  if (!filter.ok()) return filter.status().IgnoreError("any bytes may be refused");
  Random random(1);
  for (int i = 0; i < kLookups; ++i) {
    const uint64_t hash = random.Next();
    for (const uint32_t slot : filter->Find(hash)) {
      MustHold(slot < filter->slots(), "a slot of the store");
      MustHold(filter->Finds(hash, slot), "a lookup finds its candidates");
    }
  }
  for (size_t slot = 0; slot < filter->slots(); ++slot) filter->Occupied(slot);
  MustHold(*CuckooFilter::Decode(bucket_bits, AsBytes(filter->Encode())) == *filter,
           "an encoded filter is decoded");
}

void LookUpInRunFilter(ByteView bytes) {
  const auto filter = RunFilter::Decode(bytes);
  if (!filter.ok()) return filter.status().IgnoreError("any bytes may be refused");
  Random random(1);
  for (int i = 0; i < kLookups; ++i) {
    const uint64_t hash = random.Next();
    filter->Prefetch(hash);
    filter->MayContain(hash);
  }
  Encoder out;
  filter->Encode(out);
  MustHold(*RunFilter::Decode(out.view()) == *filter, "an encoded filter is decoded");
}

constexpr uint8_t kRunFilter = 6;

}  // namespace

void RunTable(FuzzInput input) {
  const uint64_t kind = input.Number(1) % 8;
  const bool trie = kind % 2 == 0;
  const auto bucket_bits = static_cast<unsigned>(input.Between(1, 10, 1));
  const ByteView bytes = input.Take(input.remaining());
  if (kind == kRunFilter) return LookUpInRunFilter(bytes);
  if (trie) return LookUpInTrie(bytes);
  LookUpInFilter(bucket_bits, bytes);
}

std::vector<Bytes> FuzzSeeds() {
  std::vector<Bytes> seeds;
  Random random(7);
  for (const size_t count : {1, 3, 60, 700}) {
    for (const uint32_t block_entries : {1u, 16u}) {
      std::vector<ChunkName> names(count);
      for (ChunkName& name : names) name = RandomName(random);
      std::sort(names.begin(), names.end());
      TrieOptions options;
      options.block_entries = block_entries;
      TrieBuilder builder(options, count);
      for (const ChunkName& name : names) builder.Add(name);
      const TrieIndex trie = Must(builder.Finish());
      Encoder out;
      trie.Encode(out);
      seeds.push_back(JoinInput({0, 0}, out.view()));
    }
  }
  CuckooTable table(kBucketBits);
  for (uint32_t i = 0; i < 60; ++i) table.Insert(random.Next(), i);
  const std::string filter = CuckooFilter(table).Encode();
  MustHold(CuckooFilter::Decode(kBucketBits, AsBytes(filter)).ok(), "a seed is accepted");
  seeds.push_back(JoinInput({1, kBucketBits - 1}, AsBytes(filter)));
  std::vector<uint64_t> hashes(60);
  for (uint64_t& hash : hashes) hash = random.Next();
  std::sort(hashes.begin(), hashes.end());
  Encoder run_filter;
  RunFilter::Of(hashes, 0, kLeastRunFilterSlices).Encode(run_filter);
  seeds.push_back(JoinInput({kRunFilter, 0}, run_filter.view()));
  return seeds;
}

}  // namespace siltfs::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  siltfs::testing::RunTable(siltfs::testing::FuzzInput(data, size));
  return 0;
}
