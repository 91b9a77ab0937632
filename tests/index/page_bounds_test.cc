// Page boundaries: the alternative to tries.
#include "index/flash/page_bounds.h"

#include <algorithm>

#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct Pages {
  HashBins bins;
  std::vector<std::vector<uint64_t>> hashes;  // by page
};

// Divides ascending hashes into pages as SortedStoreWriter does.
Pages Divide(const std::vector<uint64_t>& hashes, const HashBins& bins, size_t per_page) {
  Pages pages{bins, {}};
  for (size_t begin = 0; begin < hashes.size();) {
    size_t end = begin;
    while (end < hashes.size() && bins.Of(hashes[end]) == bins.Of(hashes[begin])) ++end;
    if (pages.hashes.empty() || pages.hashes.back().size() + (end - begin) > per_page) {
      pages.hashes.emplace_back();
    }
    for (; begin < end; ++begin) {
      if (pages.hashes.back().size() == per_page) pages.hashes.emplace_back();
      pages.hashes.back().push_back(hashes[begin]);
    }
  }
  return pages;
}

PageBounds BoundsOf(const Pages& pages, size_t per_page) {
  PageBoundsBuilder builder(pages.bins, per_page);
  for (const auto& page : pages.hashes) builder.AddPage(pages.bins.Of(page.front()));
  REQUIRE(builder.pages() == pages.hashes.size());
  return builder.Finish();
}

std::vector<uint64_t> RandomHashes(size_t count, unsigned skip_bits, uint64_t seed) {
  Random random(seed);
  const uint64_t prefix = skip_bits == 0 ? 0 : random.Next() << (64 - skip_bits);
  std::vector<uint64_t> hashes(count);
  for (uint64_t& hash : hashes) hash = prefix | random.Next() >> skip_bits;
  std::sort(hashes.begin(), hashes.end());
  return hashes;
}

std::string Encoded(const PageBounds& bounds) {
  Encoder out;
  bounds.Encode(out);
  return out.Take();
}

}  // namespace

TEST_CASE("every key is in the only page that its boundaries return") {
  const size_t count = GENERATE(1, 2, 203, 204, 205, 1000, 100'000);
  const unsigned skip_bits = GENERATE(0U, 6U, 32U);
  const auto hashes = RandomHashes(count, skip_bits, count);
  // The number of bins is an estimate of the number of entries.
  const uint64_t bins =
      GENERATE_COPY(uint64_t{1} + count / 3, uint64_t{count}, uint64_t{count} * 5);
  if (bins < count && count > 1000) return;  // bins of more entries than a page: below
  const Pages pages = Divide(hashes, {.skip_bits = skip_bits, .count = bins}, 204);
  const PageBounds bounds = BoundsOf(pages, 204);
  REQUIRE(bounds.pages() == pages.hashes.size());
  const auto read = PageBounds::Decode(AsBytes(Encoded(bounds)));
  REQUIRE_OK(read);
  uint64_t wrong = 0;
  for (uint32_t page = 0; page < pages.hashes.size(); ++page) {
    for (const uint64_t hash : pages.hashes[page]) {
      for (const PageBounds* each : {&bounds, &*read}) {
        const auto [first, last] = each->PagesOf(hash);
        wrong += first == page && last == page ? 0 : 1;
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("absent keys lead to a page between those of their neighbors") {
  const auto hashes = RandomHashes(20'000, 0, 1);
  const Pages pages = Divide(hashes, {.count = hashes.size()}, 204);
  const PageBounds bounds = BoundsOf(pages, 204);
  Random random(2);
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t hash = random.Next();
    const auto [first, last] = bounds.PagesOf(hash);
    REQUIRE(first == last);
    REQUIRE(last < bounds.pages());
    if (first > 0) REQUIRE(pages.hashes[first - 1].back() < hash);
    if (last + 1 < bounds.pages()) REQUIRE(pages.hashes[last + 1].front() > hash);
  }
}

TEST_CASE("boundaries take some ten bits a page, and pages ended at bins of one key are full") {
  const auto hashes = RandomHashes(400'000, 0, 3);
  const Pages pages = Divide(hashes, {.count = hashes.size()}, 204);
  const PageBounds bounds = BoundsOf(pages, 204);
  const double bits = 8.0 * static_cast<double>(bounds.memory_bytes()) / bounds.pages();
  CHECK(bits > 9);
  CHECK(bits < 11);
  CHECK(static_cast<double>(bounds.pages()) * 204 < 1.005 * static_cast<double>(hashes.size()));
}

TEST_CASE("a bin that exceeds a page leads to all of its pages, and to no others") {
  // 1,000 keys in the range of one bin, between other keys; pages of 10.
  std::vector<uint64_t> hashes = RandomHashes(500, 0, 4);
  const uint64_t crowded = uint64_t{7} << 60;
  for (uint64_t i = 0; i < 1000; ++i) hashes.push_back(crowded + i);
  std::sort(hashes.begin(), hashes.end());
  const Pages pages = Divide(hashes, {.count = 1000}, 10);
  const PageBounds bounds = BoundsOf(pages, 10);
  REQUIRE_OK(PageBounds::Decode(AsBytes(Encoded(bounds))));
  for (uint32_t page = 0; page < pages.hashes.size(); ++page) {
    for (const uint64_t hash : pages.hashes[page]) {
      const auto [first, last] = bounds.PagesOf(hash);
      REQUIRE(first <= page);
      REQUIRE(page <= last);
      const bool is_crowded = hash - crowded < 1000;
      REQUIRE(last - first >= (is_crowded ? 99 : 0));
      if (!is_crowded && pages.bins.Of(hash) != pages.bins.Of(crowded)) REQUIRE(first == last);
    }
  }
}

TEST_CASE("bytes accepted as boundaries are safe to look up in") {
  const auto hashes = RandomHashes(3000, 0, 5);
  const std::string good = Encoded(BoundsOf(Divide(hashes, {.count = hashes.size()}, 20), 20));
  Random random(6);
  int accepted = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string bad = good;
    for (uint64_t flips = 1 + random.Below(3); flips-- > 0;) {
      // Mostly in the header.
      const uint64_t at = random.OneIn(2) ? random.Below(15) : random.Below(bad.size());
      bad[at] = static_cast<char>(bad[at] ^ (1 << random.Below(8)));
    }
    if (random.OneIn(8)) bad.resize(random.Below(bad.size()));
    const auto read = PageBounds::Decode(AsBytes(bad));
    if (!read.ok()) {
      REQUIRE_CODE(read, kCorruption);
      continue;
    }
    ++accepted;
    uint64_t wrong = 0;
    for (int k = 0; k < 50; ++k) {
      const auto [first, last] = read->PagesOf(random.Next());
      wrong += first <= last && last < read->pages() ? 0 : 1;
    }
    REQUIRE(wrong == 0);
  }
  CHECK(accepted > 20);
}

}  // namespace siltfs::testing
