#include "fs/rings/ring_plan.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace siltfs::fuse {
namespace {

constexpr size_t kMaxPayloadBytes = size_t{1} << 20;
constexpr size_t kMinPayloadBytes = size_t{128} << 10;
constexpr size_t kMaxSlots = 16;  // of one processor
constexpr size_t kFewSlots = 4;   // large requests become smaller before there are fewer slots
constexpr size_t kMinSlots = 2;
constexpr unsigned kMaxProcessor = 65535;  // the kernel's queue numbers have 16 bits

std::optional<unsigned> ParseNumber(std::string_view text) {
  unsigned number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || number > kMaxProcessor) return std::nullopt;
  return number;
}

Status NotAList() { return {StatusCode::kCorruption, "not a list of processors"}; }

Result<std::vector<unsigned>> ReadProcessorList(const std::string& path) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  auto list = ParseProcessorList(text);
  if (!list.ok()) return std::move(list).status().At(path);
  return list;
}

}  // namespace

Result<std::vector<unsigned>> ParseProcessorList(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::vector<unsigned> list;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view range = text.substr(0, comma);
    const size_t dash = range.find('-');
    const auto first = ParseNumber(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : ParseNumber(range.substr(dash + 1));
    if (!first || !last || *first > *last) return NotAList();
    if (!list.empty() && *first <= list.back()) return NotAList();
    for (unsigned number = *first; number <= *last; ++number) list.push_back(number);
    if (comma == text.size()) return list;
    text.remove_prefix(comma + 1);
  }
}

Result<Processors> ReadProcessors() {
  Processors processors;
  SILTFS_ASSIGN_OR_RETURN(processors.possible,
                          ReadProcessorList("/sys/devices/system/cpu/possible"));
  SILTFS_ASSIGN_OR_RETURN(processors.online, ReadProcessorList("/sys/devices/system/cpu/online"));
  return processors;
}

RingPlan PlanRings(const Processors& processors) {
  RingPlan plan;
  const size_t count = std::max<size_t>(processors.online.size(), 1);
  plan.payload_bytes = std::clamp(std::bit_floor(kRingBytes / (count * kFewSlots)),
                                  kMinPayloadBytes, kMaxPayloadBytes);
  const size_t slots = std::clamp(kRingBytes / (count * plan.payload_bytes), kMinSlots, kMaxSlots);
  for (const unsigned processor : processors.online) {
    plan.rings.push_back(
        {.processor = processor, .slot_queues = std::vector<unsigned>(slots, processor)});
  }
  if (plan.rings.empty()) return plan;
  for (const unsigned processor : processors.possible) {
    if (std::binary_search(processors.online.begin(), processors.online.end(), processor)) continue;
    plan.rings[processor % plan.rings.size()].slot_queues.push_back(processor);
  }
  return plan;
}

}  // namespace siltfs::fuse
