// siltfs-bench cuckoo: fills partial-key cuckoo tables of a LogStore's size, each until an insert
// fails, and looks keys up. On one thread, in memory.
#include <memory>
#include <string>
#include <vector>

#include "index/flash/cuckoo_table.h"
#include "store/base/random.h"
#include "store/env/resources.h"
#include "tools/bench/bench.h"
#include "tools/bench/rounds.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

struct CuckooBenchArguments {
  uint64_t entries = 4'000'000;
  unsigned bucket_bits = 12;
  unsigned rounds = 3;
  uint64_t seed = 1;
};

// A key that was inserted.
struct Key {
  uint64_t hash;   // a table gets only this hash of the key
  uint32_t table;  // the number of the table that has the key
  uint32_t value;  // the value with which the key was inserted
};

// As many tables as the keys need. All except the last were filled until an insert failed.
struct Tables {
  std::vector<CuckooTable> tables;
  std::vector<Key> keys;
};

Tables Fill(const CuckooBenchArguments& arguments, const std::vector<uint64_t>& hashes) {
  Tables filled;
  filled.keys.reserve(hashes.size());
  filled.tables.emplace_back(arguments.bucket_bits);
  for (const uint64_t hash : hashes) {
    const auto value = static_cast<uint32_t>(filled.tables.back().size());
    if (filled.tables.back().Insert(hash, value)) {
      filled.keys.push_back({hash, static_cast<uint32_t>(filled.tables.size() - 1), value});
      continue;
    }
    filled.tables.emplace_back(arguments.bucket_bits);
    if (!filled.tables.back().Insert(hash, 0)) throw BenchFailure("cuckoo: an empty table refused");
    filled.keys.push_back({hash, static_cast<uint32_t>(filled.tables.size() - 1), 0});
  }
  return filled;
}

void Shuffle(std::vector<Key>& keys, Random& random) {
  for (size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[random.Below(i)]);
}

// Looks every key up in its table. Returns the number of found candidates that belonged to other
// keys.
uint64_t LookUp(const Tables& filled, const std::vector<Key>& keys) {
  uint64_t candidates = 0;
  uint64_t missing = 0;
  for (const Key& key : keys) {
    bool found = false;
    const auto values = filled.tables[key.table].Find(key.hash);
    for (const uint32_t value : values) found |= value == key.value;
    candidates += values.size();
    missing += found ? 0 : 1;
  }
  if (missing > 0) throw BenchFailure("cuckoo: " + std::to_string(missing) + " keys were lost");
  return candidates - keys.size();
}

Json RunCuckooBench(const CuckooBenchArguments& arguments) {
  Random random(arguments.seed);
  std::vector<uint64_t> hashes(arguments.entries);
  for (uint64_t& hash : hashes) hash = random.Next();

  std::vector<double> inserts, lookups, misses;
  double occupancy = 0;
  double bits_per_key = 0;
  double others_per_miss = 0;
  size_t tables = 0;
  for (unsigned round = 0; round < arguments.rounds; ++round) {
    const Stopwatch inserting;
    Tables filled = Fill(arguments, hashes);
    inserts.push_back(inserting.seconds());

    // Look up present keys in the order of their insertion, so one table after another. The places
    // of the keys in a table are random.
    const Stopwatch looking_up;
    LookUp(filled, filled.keys);
    lookups.push_back(looking_up.seconds());

    // Look up absent keys. Each one is made from a present key, and is looked up in that key's
    // table. Because the present keys were shuffled, the tables follow in random order.
    Shuffle(filled.keys, random);
    uint64_t others = 0;
    const Stopwatch missing;
    for (const Key& key : filled.keys) {
      others += filled.tables[key.table].Find(~key.hash * 0x9e3779b97f4a7c15U).size();
    }
    misses.push_back(missing.seconds());

    const size_t full = filled.tables.size() > 1 ? filled.tables.size() - 1 : 1;
    uint64_t taken = 0;
    uint64_t memory = 0;
    for (size_t i = 0; i < full; ++i) {
      taken += filled.tables[i].size();
      memory += filled.tables[i].memory_bytes();
    }
    tables = filled.tables.size();
    const auto places = static_cast<double>(full * filled.tables[0].capacity());
    occupancy = static_cast<double>(taken) / places;
    bits_per_key = 8 * static_cast<double>(memory) / static_cast<double>(taken);
    others_per_miss = static_cast<double>(others) / static_cast<double>(filled.keys.size());
  }
  const auto entries = static_cast<double>(arguments.entries);
  return {{"entries", arguments.entries},
          {"tables", tables},
          {"bucket_bits", arguments.bucket_bits},
          {"rounds", arguments.rounds},
          {"processor", ProcessorName()},
          {"verified", true},
          {"insert_per_s", entries / Median(inserts)},
          {"lookup_per_s", entries / Median(lookups)},
          {"absent_lookup_per_s", entries / Median(misses)},
          {"candidates_per_absent_lookup", others_per_miss},
          {"bits_per_key", bits_per_key},
          {"occupancy", occupancy}};
}

}  // namespace

std::function<Json()> ConfigureCuckooBench(CLI::App& app) {
  auto arguments = std::make_shared<CuckooBenchArguments>();
  app.add_option("--entries", arguments->entries, "Number of keys")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}))
      ->capture_default_str();
  app.add_option("--bucket-bits", arguments->bucket_bits, "Binary logarithm of a table's buckets")
      ->check(CLI::Range(1U, kMaxBucketBits))
      ->capture_default_str();
  app.add_option("--rounds", arguments->rounds, "Figures are medians of this many rounds")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  app.add_option("--seed", arguments->seed, "Seed of the keys")->capture_default_str();
  return [arguments] { return RunCuckooBench(*arguments); };
}

}  // namespace siltfs
