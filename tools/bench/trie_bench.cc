// siltfs-bench trie: measures the entropy-coded trie over uniformly distributed keys, in parts of a
// SortedStore's size, on one thread, in memory.
#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "index/silt/trie_builder.h"
#include "index/silt/trie_index.h"
#include "store/base/random.h"
#include "store/env/resources.h"
#include "tools/bench/bench.h"
#include "tools/bench/rounds.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

struct TrieBenchArguments {
  uint64_t entries = 4'000'000;
  uint64_t part_entries = 1'000'000;
  uint64_t lookups = 0;
  unsigned rounds = 3;
  uint64_t seed = 1;
  bool weak = false;
  bool exact = false;
  bool sparse = false;
};

struct Mode {
  const char* name;
  TrieOrdering ordering;
  uint32_t block_entries;
};
constexpr uint32_t kSparseEntries = 128;  // entries of 32 bytes in a block of 4 KiB
constexpr Mode kModes[] = {
    {"weak", TrieOrdering::kWeak, 1},
    {"exact", TrieOrdering::kExact, 1},
    {"sparse_weak", TrieOrdering::kWeak, kSparseEntries},
    {"sparse_exact", TrieOrdering::kExact, kSparseEntries},
};

// Sorted keys, split by their leading bits into 2^part_bits parts.
struct Keys {
  unsigned part_bits = 0;
  std::vector<std::vector<ChunkName>> parts;
};

unsigned PartOf(const ChunkName& key, unsigned part_bits) {
  return part_bits == 0 ? 0 : static_cast<unsigned>(key.Prefix64() >> (64 - part_bits));
}

Keys MakeKeys(const TrieBenchArguments& arguments) {
  Keys keys;
  const uint64_t wanted = (arguments.entries + arguments.part_entries - 1) / arguments.part_entries;
  keys.part_bits = std::min<unsigned>(std::bit_width(wanted - 1), 16);
  keys.parts.resize(size_t{1} << keys.part_bits);
  Random random(arguments.seed);
  for (uint64_t i = 0; i < arguments.entries; ++i) {
    ChunkName key;
    random.Fill(key.bytes);
    keys.parts[PartOf(key, keys.part_bits)].push_back(key);
  }
  for (auto& part : keys.parts) std::sort(part.begin(), part.end());
  return keys;
}

// A key, and the answer expected from the index.
struct Question {
  ChunkName key;
  uint32_t part;
  uint32_t rank;
};

std::vector<Question> MakeQuestions(const Keys& keys, const TrieBenchArguments& arguments) {
  std::vector<Question> questions;
  for (uint32_t part = 0; part < keys.parts.size(); ++part) {
    for (uint32_t rank = 0; rank < keys.parts[part].size(); ++rank) {
      questions.push_back({keys.parts[part][rank], part, rank});
    }
  }
  Random random(arguments.seed + 1);
  for (size_t i = questions.size(); i > 1; --i) {
    std::swap(questions[i - 1], questions[random.Below(i)]);
  }
  const size_t distinct = questions.size();
  questions.reserve(std::max<uint64_t>(arguments.lookups, distinct));
  while (questions.size() < arguments.lookups) {
    questions.push_back(questions[questions.size() - distinct]);
  }
  return questions;
}

std::vector<TrieIndex> Build(const Keys& keys, const TrieOptions& options) {
  std::vector<TrieIndex> indexes;
  for (const auto& part : keys.parts) {
    TrieBuilder builder(options, part.size());
    for (const ChunkName& key : part) builder.Add(key);
    Result<TrieIndex> index = builder.Finish();
    if (!index.ok()) throw BenchFailure(index.status().ToString());
    indexes.push_back(std::move(index).value());
  }
  return indexes;
}

// Looks up the keys of all questions. Throws on a wrong answer.
void LookUp(const std::vector<TrieIndex>& indexes, const std::vector<Question>& questions,
            unsigned part_bits, uint32_t block_entries) {
  uint64_t wrong = 0;
  for (const Question& question : questions) {
    const uint32_t block = indexes[PartOf(question.key, part_bits)].Lookup(question.key);
    wrong += block == question.rank / block_entries ? 0 : 1;
  }
  if (wrong > 0) throw BenchFailure("trie: " + std::to_string(wrong) + " lookups were wrong");
}

Json Measure(const Mode& mode, const Keys& keys, const std::vector<Question>& questions,
             const TrieBenchArguments& arguments) {
  const TrieOptions options{
      .ordering = mode.ordering, .block_entries = mode.block_entries, .skip_bits = keys.part_bits};
  std::vector<double> builds, loads, lookups;
  uint64_t memory = 0;
  uint64_t encoded_bytes = 0;
  for (unsigned round = 0; round < arguments.rounds; ++round) {
    const Stopwatch building;
    const std::vector<TrieIndex> indexes = Build(keys, options);
    builds.push_back(building.seconds());

    const Stopwatch looking_up;
    LookUp(indexes, questions, keys.part_bits, mode.block_entries);
    lookups.push_back(looking_up.seconds());

    memory = encoded_bytes = 0;
    double loading = 0;
    for (const TrieIndex& index : indexes) {
      Encoder encoded;
      index.Encode(encoded);
      const Stopwatch decoding;
      const Result<TrieIndex> decoded = TrieIndex::Decode(encoded.view());
      loading += decoding.seconds();
      if (!decoded.ok()) throw BenchFailure(decoded.status().ToString());
      memory += index.memory_bytes();
      encoded_bytes += encoded.size();
    }
    loads.push_back(loading);
  }
  const auto entries = static_cast<double>(arguments.entries);
  return {{"build_per_s", entries / Median(builds)},
          {"lookup_per_s", static_cast<double>(questions.size()) / Median(lookups)},
          {"load_per_s", entries / Median(loads)},
          {"bits_per_key", 8 * static_cast<double>(memory) / entries},
          {"encoded_bits_per_key", 8 * static_cast<double>(encoded_bytes) / entries},
          {"block_entries", mode.block_entries}};
}

Json RunTrieBench(const TrieBenchArguments& arguments) {
  const Keys keys = MakeKeys(arguments);
  const std::vector<Question> questions = MakeQuestions(keys, arguments);
  const bool all = !arguments.weak && !arguments.exact && !arguments.sparse;
  Json modes;
  for (const Mode& mode : kModes) {
    const bool sparse = mode.block_entries > 1;
    const bool weak = mode.ordering == TrieOrdering::kWeak;
    const bool ordering_wanted = arguments.weak == arguments.exact || (weak == arguments.weak);
    const bool wanted = all || (ordering_wanted && sparse == arguments.sparse);
    // The first mode is always measured.
    if (wanted || &mode == &kModes[0]) {
      modes[mode.name] = Measure(mode, keys, questions, arguments);
    }
  }
  Json statistics{{"entries", arguments.entries}, {"parts", keys.parts.size()},
                  {"lookups", questions.size()},  {"rounds", arguments.rounds},
                  {"processor", ProcessorName()}, {"verified", true}};
  statistics.update(modes[kModes[0].name]);
  statistics["modes"] = modes;
  return statistics;
}

}  // namespace

std::function<Json()> ConfigureTrieBench(CLI::App& app) {
  auto arguments = std::make_shared<TrieBenchArguments>();
  app.add_option("--entries", arguments->entries, "Number of keys")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}))
      ->capture_default_str();
  app.add_option("--part-entries", arguments->part_entries,
                 "Approximate number of keys per SortedStore")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}))
      ->capture_default_str();
  app.add_option("--lookups", arguments->lookups,
                 "Least number of lookups; every key is looked up at least once");
  app.add_option("--rounds", arguments->rounds, "Figures are medians of this many rounds")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  app.add_option("--seed", arguments->seed, "Seed of the keys")->capture_default_str();
  app.add_flag("--weak", arguments->weak,
               "Measure weak ordering: without --sparse, the mode that returns ranks");
  app.add_flag("--exact", arguments->exact, "Measure exact ordering");
  app.add_flag("--sparse", arguments->sparse, "Measure the modes for 4 KiB blocks of 128 entries");
  return [arguments] { return RunTrieBench(*arguments); };
}

}  // namespace siltfs
