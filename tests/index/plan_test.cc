// Compares SILT's analytic model with the paper's own numbers (section 5), and checks general
// properties.
#include "index/silt/plan_choice.h"

#include <cmath>
#include <vector>

#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kGiB = 1 << 30;
constexpr double kYear = 365.25 * 24 * 3600;

// The values of table 4.
const SiltWorkload kPaperWorkload = {
    .entries = 100e6, .entry_bytes = 1024, .updates_per_second = 5'000};
const SiltDevice kPaperDevice = {.flash_bytes = 256 * kGiB, .erase_cycles = 10'000};
const SiltParameters kPaperParameters = {
    .merge_entries = 7.5e6, .tag_bits = 15, .bucket_bits = 15, .instances = 4};

bool Near(double number, double expected, double within) {
  return std::abs(number - expected) <= within;
}

SiltPrediction Predict(const SiltWorkload& workload, const SiltParameters& parameters,
                       const SiltParticulars& particulars = {}) {
  const auto prediction = PredictSilt(workload, kPaperDevice, parameters, particulars);
  REQUIRE_OK(prediction);
  return *prediction;
}

TEST_CASE("the model gives the paper's results for the paper's example") {
  const SiltPrediction p = Predict(kPaperWorkload, kPaperParameters, PaperParticulars());
  CHECK(p.false_positive_rate == 1.0 / 4096);                // f = 2^-12
  CHECK(Near(p.write_amplification, 5.4086, 0.0001));        // (4): 1 + 1.07527 + 100 / 30
  CHECK(Near(p.hash_stores, 30.76, 0.01));                   // (5): "31"
  CHECK(Near(p.read_amplification, 1.00775, 0.00001));       // (6): "1.008"
  CHECK(Near(p.memory_bytes / 100e6, 0.7338, 0.0005));       // (7): "0.73 bytes per entry"
  CHECK(Near(p.memory_bytes, 73.4e6, 0.05e6));               // "73 MB in total"
  CHECK(Near(p.device_life_seconds / kYear, 3.145, 0.005));  // (8): "3 years"
}

TEST_CASE("the model agrees with the closed forms in the paper") {
  // The paper's rounded values: 2.075, 0.134, 1.07, 0.067.
  for (const unsigned k : {10U, 13U, 15U}) {
    for (const double d : {1e5, 2e6, 7.5e6, 20e6}) {
      for (const unsigned instances : {1U, 4U, 32U}) {
        const SiltPrediction p =
            Predict(kPaperWorkload,
                    {.merge_entries = d, .tag_bits = k, .bucket_bits = k, .instances = instances},
                    PaperParticulars());
        INFO("k " << k << ", d " << d << ", P " << instances);
        const double two_k = std::pow(2.0, k);
        CHECK(p.write_amplification == Approx(2.075 + 100e6 / (d * instances)).epsilon(0.001));
        CHECK(p.hash_stores == Approx(0.1344 * d / two_k).epsilon(0.001));
        CHECK(p.read_amplification ==
              Approx(8 / two_k + 1.075 * d / two_k / two_k + 1).epsilon(0.001));
        CHECK(p.memory_bytes / 100e6 ==
              Approx(((16.5 + 0.5 * k) * two_k + 0.0672 * k * d) * instances / 100e6 + 0.4)
                  .epsilon(0.001));
      }
    }
  }
}

TEST_CASE("figure 8: more HashStores cost memory and reads, and save writes") {
  SiltPrediction before;
  for (double d = 1e6; d <= 20e6; d += 0.5e6) {
    SiltParameters parameters = kPaperParameters;
    parameters.merge_entries = d;
    const SiltPrediction p = Predict(kPaperWorkload, parameters, PaperParticulars());
    if (d > 1e6) {
      CHECK(p.write_amplification < before.write_amplification);
      CHECK(p.read_amplification > before.read_amplification);
      CHECK(p.memory_bytes > before.memory_bytes);
    }
    before = p;
  }
}

// Slots of 32 bytes, tries and nothing else.
const SiltParticulars kSimple = {.occupancy = 0.95,
                                 .occupancy_per_bit = 0,
                                 .stash = 0,
                                 .sorted_bits_per_key = 3,
                                 .tail_bytes = 8192,
                                 .log_entry_bytes = 32.0 * 128 / 127,
                                 .hash_place_bytes = 32,
                                 .sorted_entry_bytes = 32,
                                 .log_file_bytes = 0,
                                 .hash_file_bytes = 0,
                                 .manifest_bytes = 0,
                                 .manifest_partition_bytes = 0,
                                 .manifest_store_bytes = 0,
                                 .manifest_edit_bytes = 0,
                                 .store_bytes = 0};

// The calculation is for 1,000,000 entries in 4 instances, with tables of 2^10 buckets. A merge
// takes d = 38,912 entries, which are 10 HashStores.
TEST_CASE("the model matches a calculation by hand") {
  const SiltWorkload workload = {.entries = 1e6, .updates_per_second = 1'000};
  const SiltParameters parameters = {
      .merge_entries = 38'912, .tag_bits = 15, .bucket_bits = 10, .instances = 4};
  const SiltPrediction p = Predict(workload, parameters, kSimple);
  CHECK(p.log_store_entries == Approx(3891.2));  // 0.95 * 4096
  CHECK(p.hash_stores == Approx(5.0));
  CHECK(p.write_amplification == Approx(128.0 / 127 + 1 / 0.95 + 1e6 / 155'648));
  CHECK(p.read_amplification == Approx(1 + 6.0 / 4096));
  // The sum of LogStores, 4 * (4096 * 6 + 8192); trie, 375000; HashStores, 4 * 5 * 4096 * 2.
  CHECK(p.memory_bytes == Approx(131'072 + 375'000 + 163'840));
  // At the peak the 4 instances have 2.5 d entries in HashStores: 25 tables. Every LogStore is
  // being converted, the trie of 250000 keys exists twice, and one merge has its buffers.
  CHECK(p.peak_memory_bytes == Approx(131'072 + 375'000 + 204'800 + 98'304 + 93'750 + 1'500'000));
  // All keys 1.25 times, 8 logs, and 25 HashStores.
  CHECK(p.flash_bytes == Approx(32 * (1.25e6 + 8 * 3891.2 * 128 / 127 + 25 * 4096)));
  // Of an instance's 250,000 entries, 1,945.6 are in the log and 19,456 in HashStores.
  CHECK(p.average_hit_reads ==
        Approx(1 + (0.077824 * 3.5 + (1 - 0.0077824 - 0.077824) * 6) / 4096).epsilon(1e-12));
  CHECK(p.device_life_seconds ==
        Approx(256 * kGiB * 10'000 / (1'000 * 32 * p.write_amplification)));
}

TEST_CASE("files, manifests and stores cost what their particulars say") {
  const SiltWorkload workload = {.entries = 1e6};
  const SiltParameters parameters = {.merge_entries = 38'912, .bucket_bits = 10, .instances = 4};
  SiltParticulars more = kSimple;
  more.log_file_bytes = 100;
  more.hash_file_bytes = 300;
  more.manifest_bytes = 80;
  more.manifest_partition_bytes = 36;
  more.manifest_store_bytes = 8;
  more.manifest_edit_bytes = 500;
  more.manifest_edits_bytes = 1000;
  more.conversions_per_manifest = 2;
  more.store_bytes = 1000;
  const SiltPrediction a = Predict(workload, parameters, kSimple);
  const SiltPrediction b = Predict(workload, parameters, more);
  const double base = 80 + 4 * 36 + (20 + 4) * 8;  // 20 HashStores on average
  const double edit = 500 * (1 + base / 1000);
  CHECK(b.written_bytes_per_put - a.written_bytes_per_put ==
        Approx(400 / 3891.2 + edit * (0.5 / 3891.2 + 1.0 / 38'912)));
  CHECK(b.memory_bytes - a.memory_bytes == Approx(24'000));
  CHECK(b.peak_memory_bytes - a.peak_memory_bytes == Approx(29'000));  // 25 HashStores
  CHECK(b.flash_bytes - a.flash_bytes == Approx(8 * 100 + 25 * 300));
}

TEST_CASE("while an index grows, a large one merges each entry 1 / ln g times") {
  // With many partitions HashStores hold the share s = 1 - (1 - 1/g) / ln g.
  const double g = 1.4;
  const double share = 1 - (1 - 1 / g) / std::log(g);
  const SiltWorkload workload = {.entries = 1e9, .history = SiltHistory::kGrowth};
  SiltParameters parameters = {.merge_entries = 1, .bucket_bits = 8, .instances = 1024};
  parameters.merge_entries = MergeEntriesOfShare(share, workload, parameters, kSimple);
  CHECK(parameters.merge_entries == Approx(1e9 / 1024 * (1 - 1 / g)).epsilon(0.01));
  const SiltPrediction p = Predict(workload, parameters, kSimple);
  CHECK(p.write_amplification == Approx(128.0 / 127 + 1 / 0.95 + 1 / std::log(g)).epsilon(0.01));
}

TEST_CASE("under updates each entry is merged 1 / (2 s) times, where s is related to N") {
  const SiltWorkload workload = {.entries = 1e9};
  SiltParameters parameters = {.merge_entries = 1, .bucket_bits = 8, .instances = 1024};
  const double share = 0.145;
  parameters.merge_entries = MergeEntriesOfShare(share, workload, parameters, kSimple);
  const double of_n = share / (1 - share);
  const SiltPrediction p = Predict(workload, parameters, kSimple);
  CHECK(p.write_amplification == Approx(128.0 / 127 + 1 / 0.95 + 1 / (2 * of_n)).epsilon(0.002));
}

TEST_CASE("simultaneous merges need all their memory at once") {
  SiltParticulars in_step = kSimple;
  in_step.staggered_merges = false;
  const SiltParameters parameters = {.merge_entries = 38'912, .bucket_bits = 10, .instances = 4};
  const SiltWorkload workload = {.entries = 1e6};
  const SiltPrediction a = Predict(workload, parameters, kSimple);
  const SiltPrediction b = Predict(workload, parameters, in_step);
  CHECK(b.memory_bytes == a.memory_bytes);
  CHECK(b.peak_memory_bytes - a.peak_memory_bytes == Approx(15 * 4096 * 2));  // 40 tables, not 25
}

Result<SiltPlan> Choose(double entries, SiltLimits limits,
                        SiltPreference preference = SiltPreference::kLeastMemory,
                        const SiltParticulars& particulars = {}) {
  return ChooseSiltParameters({.entries = entries}, kPaperDevice, limits, particulars, preference);
}

TEST_CASE("a choice keeps to every limit, and its prediction is the model's") {
  Random random(1);
  int found = 0;
  for (int i = 0; i < 300; ++i) {
    const double entries = std::pow(10.0, 4 + static_cast<double>(random.Below(500)) / 100);
    const SiltLimits limits = {
        .memory_bytes = entries * static_cast<double>(random.Below(400)) / 100 + 1e6,
        .flash_bytes = entries * (32 + static_cast<double>(random.Below(64))),
        .write_amplification = 2 + static_cast<double>(random.Below(800)) / 100,
        .read_amplification = 1 + static_cast<double>(random.Below(300)) / 10'000};
    for (const SiltPreference preference :
         {SiltPreference::kLeastMemory, SiltPreference::kLeastWrites}) {
      const auto plan = Choose(entries, limits, preference);
      if (!plan.ok()) {
        REQUIRE_CODE(plan, kUnsupported);
        continue;
      }
      ++found;
      const SiltPrediction& p = plan->prediction;
      REQUIRE(p.peak_memory_bytes <= limits.memory_bytes);
      REQUIRE(p.flash_bytes <= limits.flash_bytes);
      REQUIRE(p.write_amplification <= limits.write_amplification);
      REQUIRE(p.read_amplification <= limits.read_amplification);
      const SiltPrediction again = Predict({.entries = entries}, plan->parameters);
      REQUIRE(again.peak_memory_bytes == p.peak_memory_bytes);
      REQUIRE(again.write_amplification == p.write_amplification);
    }
  }
  REQUIRE(found > 50);  // otherwise the test would prove nothing
  REQUIRE(found < 500);
}

TEST_CASE("no parameters need less memory than those chosen") {
  const SiltLimits limits = {.memory_bytes = 64 * kMiB, .flash_bytes = 4 * kGiB};
  const auto plan = Choose(30e6, limits);
  REQUIRE_OK(plan);
  for (unsigned bucket_bits = 8; bucket_bits <= 15; ++bucket_bits) {
    const double store = SiltLogStoreEntries({.bucket_bits = bucket_bits}, {});
    for (unsigned instances = 1; instances <= 4'096; instances *= 2) {
      for (double stores = 1; stores <= 200; ++stores) {
        const SiltPrediction p = Predict(
            {.entries = 30e6},
            {.merge_entries = stores * store, .bucket_bits = bucket_bits, .instances = instances});
        if (p.write_amplification > limits.write_amplification ||
            p.read_amplification > limits.read_amplification || p.flash_bytes > limits.flash_bytes)
          continue;
        REQUIRE(p.peak_memory_bytes >= plan->prediction.peak_memory_bytes * (1 - 1e-12));
      }
    }
  }
}

TEST_CASE("more memory, flash or tolerance never makes a choice worse") {
  const SiltLimits base = {.memory_bytes = 28 * kMiB,
                           .flash_bytes = 2 * kGiB,
                           .write_amplification = 8,
                           .read_amplification = 1.01};
  const double least_memory = Choose(30e6, base).value().prediction.peak_memory_bytes;
  double writes =
      Choose(30e6, base, SiltPreference::kLeastWrites).value().prediction.write_amplification;
  const double first = writes;
  for (double memory = 28; memory <= 512; memory *= 1.1) {
    SiltLimits limits = base;
    limits.memory_bytes = memory * kMiB;
    CHECK(Choose(30e6, limits).value().prediction.peak_memory_bytes == least_memory);
    const double now =
        Choose(30e6, limits, SiltPreference::kLeastWrites).value().prediction.write_amplification;
    CHECK(now <= writes);
    writes = now;
  }
  CHECK(writes < first * 0.8);
  double memory = least_memory;
  for (const double tolerated : {8.0, 10.0, 14.0, 20.0}) {
    SiltLimits limits = base;
    limits.write_amplification = tolerated;
    const double now = Choose(30e6, limits).value().prediction.peak_memory_bytes;
    CHECK(now <= memory);
    memory = now;
  }
  for (const double reads : {1.01, 1.02, 1.1}) {
    SiltLimits limits = base;
    limits.read_amplification = reads;
    CHECK(Choose(30e6, limits).value().prediction.peak_memory_bytes <= least_memory);
  }
}

TEST_CASE("with the paper's particulars a choice is no worse than the paper's own") {
  const SiltPrediction own = Predict(kPaperWorkload, kPaperParameters, PaperParticulars());
  const auto plan = ChooseSiltParameters(kPaperWorkload, kPaperDevice,
                                         {.memory_bytes = own.peak_memory_bytes,
                                          .flash_bytes = 256 * kGiB,
                                          .write_amplification = own.write_amplification,
                                          .read_amplification = own.read_amplification},
                                         PaperParticulars());
  REQUIRE_OK(plan);
  CHECK(plan->prediction.peak_memory_bytes <= own.peak_memory_bytes);
  CHECK(plan->parameters.tag_bits == plan->parameters.bucket_bits);
}

TEST_CASE("impossible limits are refused with the name of the limit") {
  const SiltLimits easy = {.memory_bytes = 1 * kGiB, .flash_bytes = 64 * kGiB};
  REQUIRE_OK(Choose(30e6, easy));
  const auto says = [](const Result<SiltPlan>& plan, const char* words) {
    REQUIRE_CODE(plan, kUnsupported);
    INFO(plan.status().ToString());
    CHECK(plan.status().cause().find(words) != std::string_view::npos);
  };
  SiltLimits limits = easy;
  limits.write_amplification = 1.3;
  says(Choose(30e6, limits), "no parameters reach a write amplification of 1.3");
  limits = easy;
  limits.read_amplification = 1.0001;
  says(Choose(30e6, limits), "no parameters reach a read amplification of 1.0001");
  limits = easy;
  limits.flash_bytes = 500 * kMiB;
  says(Choose(30e6, limits), "MiB, more than the 500.0 MiB of flash");
  limits = easy;
  limits.memory_bytes = 1 * kMiB;
  says(Choose(30e6, limits), "MiB, more than the 1.0 MiB of memory");
}

TEST_CASE("invalid arguments are refused") {
  const SiltLimits easy = {.memory_bytes = 1 * kGiB, .flash_bytes = 64 * kGiB};
  REQUIRE_CODE(Choose(0, easy), kInvalidArgument);
  REQUIRE_CODE(Choose(std::nan(""), easy), kInvalidArgument);
  SiltLimits limits = easy;
  limits.memory_bytes = std::nan("");
  REQUIRE_CODE(Choose(1e6, limits), kInvalidArgument);
  const auto predict = [](SiltParameters parameters, SiltParticulars particulars = {}) {
    return PredictSilt(kPaperWorkload, kPaperDevice, parameters, particulars);
  };
  SiltParameters parameters = kPaperParameters;
  parameters.merge_entries = 0;
  REQUIRE_CODE(predict(parameters), kInvalidArgument);
  parameters = kPaperParameters;
  parameters.instances = 0;
  REQUIRE_CODE(predict(parameters), kInvalidArgument);
  parameters = kPaperParameters;
  parameters.tag_bits = 0;
  REQUIRE_CODE(predict(parameters), kInvalidArgument);
  SiltParticulars particulars;
  particulars.occupancy = 1.1;
  REQUIRE_CODE(predict(kPaperParameters, particulars), kInvalidArgument);
  REQUIRE_CODE(PredictSilt(kPaperWorkload, {.flash_bytes = 0}, kPaperParameters, {}),
               kInvalidArgument);
}

}  // namespace
}  // namespace siltfs
