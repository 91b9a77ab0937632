// siltfs-bench values: measures space and reads of keys and values from 4 bytes to 1 MiB. They are
// stored in slots of one size with indirection, or in segregated stores (SILT, section 4, figure
// 7).
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "index/key_value/segregated_store.h"
#include "store/env/daemon.h"
#include "store/env/posix_env.h"
#include "store/env/resources.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/item_sizes.h"
#include "tools/bench/rounds.h"
#include "tools/bench/scratch_directory.h"
#include "tools/bench/value_model.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

struct ValuesBenchArguments {
  std::vector<size_t> slots = {64};
  double exponent = 1;
  uint64_t items = 200'000;
  uint64_t bytes = 1U << 30;
  uint64_t gets = 20'000;
  std::string directory;
  uint64_t seed = 1;
};

constexpr size_t kKeySize = 4;
// Lookups return at most this many times the bytes that were put. Without this limit, most time
// would go into generating large values for comparison.
constexpr uint64_t kMostBytesGot = 2;
constexpr uint64_t kFewestGets = 1000;
// A LogStore is so small that the entries fill this many LogStores. So most entries have been moved
// to HashStores and SortedStores.
constexpr uint64_t kLogsInAll = 64;

struct ItemKey {
  uint32_t number = 0;
  uint8_t instance = 0;
};

class ValuesBench {
 public:
  explicit ValuesBench(const ValuesBenchArguments& arguments)
      : arguments_(arguments),
        env_(NewPosixEnv()),
        scratch_(*env_, arguments.directory),
        sizes_(arguments.exponent) {
    const auto fitting =
        static_cast<uint64_t>(static_cast<double>(arguments.bytes) / sizes_.Mean());
    items_ = std::clamp<uint64_t>(fitting, 1, arguments.items);
    gets_ = std::clamp<uint64_t>(kMostBytesGot * fitting, kFewestGets, arguments.gets);
    options_.directory = scratch_.path() + "/store";
    options_.slot_sizes = arguments.slots;
    options_.index.partition_bits = 0;
    options_.index.write_batch_pages = 8;
    options_.index.bucket_bits = BucketBits();
    Require(env_->CreateDirectory(options_.directory));
  }

  Json Run() {
    const auto limit = RaiseFileLimit();
    Require(limit.status());
    const double put_seconds = Fill();
    Open();  // so that no answer comes from unwritten data
    WaitUntilIdle();
    LookUp();
    Verify();
    Json statistics = Statistics(put_seconds);
    Require(store_->Close());
    return statistics;
  }

 private:
  // Returns the bucket bits for slots of 32 bytes. Tables of larger slots have the same size in
  // bytes. The size is chosen so that the store with the smallest slots, which gets most entries,
  // fills about kLogsInAll tables.
  unsigned BucketBits() const {
    const uint64_t places = std::max<uint64_t>(items_ / kLogsInAll, 16);
    const auto bits = static_cast<unsigned>(std::bit_width(places / 4));
    const auto doublings = static_cast<unsigned>(std::countr_zero(options_.slot_sizes.front())) -
                           SlotLayout::kLeastBits;
    return std::clamp(bits + doublings, 2U, 15U);
  }

  void Open() {
    if (store_) Require(store_->Close());
    store_.reset();
    auto opened = SegregatedStore::Open(*env_, options_);
    Require(opened.status());
    store_ = std::move(*opened);
  }

  // Returns the item's size, which follows from its number and the seed.
  uint64_t SizeOf(uint32_t number) const {
    Random random(arguments_.seed * 1'000'003 + number);
    return sizes_.Draw(random);
  }
  static std::array<uint8_t, kKeySize> KeyOf(uint32_t number) {
    std::array<uint8_t, kKeySize> key;
    for (size_t i = 0; i < kKeySize; ++i) key[i] = static_cast<uint8_t>(number >> (8 * i));
    return key;
  }
  Bytes ValueOf(uint32_t number) const {
    Bytes value(SizeOf(number) - kKeySize);
    Random random(arguments_.seed * 7 + number);
    random.Fill(value);
    return value;
  }

  double Fill() {
    Open();
    Stopwatch watch;
    for (uint64_t i = 0; i < items_; ++i) {
      const auto number = static_cast<uint32_t>(i);
      const Bytes value = ValueOf(number);
      data_bytes_ += kKeySize + value.size();
      const auto instance = store_->Put(KeyOf(number), value);
      Require(instance.status());
      keys_.push_back({.number = number, .instance = *instance});
    }
    Require(store_->Flush());
    const double seconds = watch.seconds();
    WaitUntilIdle();
    return seconds;
  }

  // Waits until conversions are done and filters are loaded.
  void WaitUntilIdle() {
    for (;;) {
      const IndexStats stats = store_->stats().index;
      if (stats.merge_backlog == 0 && stats.load_backlog == 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  void LookUp() {
    const KeyValueStats before = store_->stats();
    Random random(arguments_.seed);
    Stopwatch watch;
    for (uint64_t i = 0; i < gets_; ++i) {
      const ItemKey& key = keys_[random.Below(keys_.size())];
      const auto got = store_->Get(key.instance, KeyOf(key.number));
      Require(got.status());
      if (!*got || **got != ValueOf(key.number)) throw BenchFailure("a wrong value");
    }
    get_seconds_ = watch.seconds();
    const KeyValueStats after = store_->stats();
    index_reads_ = after.index.flash_reads - before.index.flash_reads;
    value_reads_ = after.values.block_reads - before.values.block_reads;
  }

  // Checks that every value that was put is in the store once.
  void Verify() {
    uint64_t seen = 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < store_->instance_count(); ++i) {
      const auto visit = [&](const Item& item) -> Status {
        uint32_t number = 0;
        for (size_t k = 0; k < kKeySize; ++k) number |= uint32_t{item.key[k]} << (8 * k);
        if (!std::ranges::equal(item.value, ValueOf(number))) {
          return {StatusCode::kCorruption, "a wrong value"};
        }
        ++seen;
        sum += number;
        return Status::Ok();
      };
      Require(store_->instance(static_cast<SegregatedStore::InstanceId>(i)).ForEach(visit));
    }
    if (seen != items_ || sum != items_ * (items_ - 1) / 2)
      throw BenchFailure("values are missing");
  }

  IndexShape Shape() const {
    uint64_t hash_entries = 0;
    uint64_t all = 0;
    for (size_t i = 0; i < store_->instance_count(); ++i) {
      const auto& instance = store_->instance(static_cast<SegregatedStore::InstanceId>(i));
      for (const IndexComponentStats& store : instance.stats().index.stores) {
        all += store.entries;
        if (store.kind == "hash_store") hash_entries += store.entries;
      }
    }
    return {.hash_store_share = static_cast<double>(hash_entries) / static_cast<double>(all)};
  }

  Json Statistics(double put_seconds) {
    const auto per_get = [&](uint64_t reads) {
      return static_cast<double>(reads) / static_cast<double>(gets_);
    };
    const KeyValueStats stats = store_->stats();
    const ValueCost model =
        ModelCost(sizes_, arguments_.slots, Shape(), options_.values.block_bytes);
    Json statistics = {
        {"slot_sizes", arguments_.slots},
        {"exponent", arguments_.exponent},
        {"items", items_},
        {"gets", gets_},
        {"verified", true},  // a wrong answer throws
        {"data_bytes", data_bytes_},
        {"mean_bytes", sizes_.Mean()},
        {"flash_bytes", stats.flash_bytes},
        {"space", static_cast<double>(stats.flash_bytes) / static_cast<double>(data_bytes_)},
        {"reads_per_get", per_get(index_reads_ + value_reads_)},
        {"index_reads_per_get", per_get(index_reads_)},
        {"value_reads_per_get", per_get(value_reads_)},
        {"model", {{"space", model.space}, {"reads_per_get", model.reads}}},
        {"put_bytes_per_s", static_cast<double>(data_bytes_) / put_seconds},
        {"puts_per_s", static_cast<double>(items_) / put_seconds},
        {"gets_per_s", static_cast<double>(gets_) / get_seconds_},
        {"memory_bytes", stats.index.memory_bytes}};
    if (arguments_.slots.size() == 1) {
      const ValueCost paper = PaperCost(sizes_, arguments_.slots.front());
      statistics["paper"] = {{"space", paper.space}, {"reads_per_get", paper.reads}};
    }
    return statistics;
  }

  const ValuesBenchArguments& arguments_;
  const std::unique_ptr<Env> env_;
  const ScratchDirectory scratch_;
  const ItemSizes sizes_;
  SegregatedOptions options_;
  uint64_t items_ = 0;
  uint64_t gets_ = 0;
  std::unique_ptr<SegregatedStore> store_;
  std::vector<ItemKey> keys_;
  uint64_t data_bytes_ = 0;
  uint64_t index_reads_ = 0;
  uint64_t value_reads_ = 0;
  double get_seconds_ = 0;
};

}  // namespace

std::function<Json()> ConfigureValuesBench(CLI::App& app) {
  auto arguments = std::make_shared<ValuesBenchArguments>();
  app.add_option("--slots", arguments->slots,
                 "Bytes of a slot, 32 to 2048; with several sizes, a separate store for each")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--exponent", arguments->exponent, "Exponent of the sizes' distribution")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  app.add_option("--items", arguments->items, "Limit of the number of keys")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 31))
      ->capture_default_str();
  app.add_option("--bytes", arguments->bytes, "Approximate limit of the bytes of keys and values")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--get", arguments->gets, "Limit of the number of lookups")
      ->check(CLI::Range(kFewestGets, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--dir", arguments->directory,
                 "Where to make the store (the temporary directory)");
  app.add_option("--seed", arguments->seed, "Seed of sizes and contents")->capture_default_str();
  return [arguments] { return ValuesBench(*arguments).Run(); };
}

}  // namespace siltfs
