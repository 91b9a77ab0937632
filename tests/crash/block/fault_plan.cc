#include "tests/crash/block/fault_plan.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <thread>

namespace siltfs::blocktest {
namespace {

// Parts of a store that can fail separately on the device.
struct Area {
  const char* name;
  const char* path;  // below the store; null for the whole device or a random range of it
};
constexpr std::array kAreas = {Area{"everything", nullptr},  Area{"a random range", nullptr},
                               Area{"segments", "segments"}, Area{"the index", "index"},
                               Area{"metadata", "meta"},     Area{"the ledger", "meta.ledger"}};

void Wait(uint64_t milliseconds, const std::function<bool()>& is_over) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (std::chrono::steady_clock::now() < end && !is_over())
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

}  // namespace

Fault FaultPlan::MakeFault() {
  Fault fault;
  const uint64_t kinds = 1 + random_.Below(7);
  fault.writes = (kinds & 1) != 0;
  fault.flushes = (kinds & 2) != 0;
  fault.reads = (kinds & 4) != 0;
  // btrfs does not report where on the device the bytes of a file are.
  const bool can_map = bench_.kind != LowerKind::kBtrfs;
  const Area& area = kAreas[random_.Below(can_map ? kAreas.size() : 2)];
  if (area.path != nullptr) {
    fault.ranges = ExtentsOf(bench_.product.options().store + "/" + area.path);
  } else if (&area != &kAreas[0]) {
    const uint64_t begin = random_.Below(bench_.disk.size());
    fault.ranges = {{begin, begin + (uint64_t{1} << (16 + random_.Below(11)))}};
  }
  // The part may have no place on the device yet. An empty range lets no read or write fail; no
  // range at all would stand for the whole device.
  if (area.path != nullptr && fault.ranges.empty()) fault.ranges = {{0, 0}};
  text_ += fmt::format("{}{}{}{} of {} fail", text_.empty() ? "" : ", then ",
                       fault.writes ? "writes " : "", fault.flushes ? "flushes " : "",
                       fault.reads ? "reads " : "", area.name);
  return fault;
}

void FaultPlan::Run(const std::function<bool()>& is_over) {
  const uint64_t count = 1 + random_.Below(3);
  for (uint64_t i = 0; i < count && !is_over(); ++i) {
    Wait(50 + random_.Below(300), is_over);
    device_.SetFault(MakeFault());
    Wait(20 + random_.Below(300), is_over);
    // The last failure may last until after the unmount.
    if (i + 1 == count && random_.OneIn(3)) return;
    device_.SetFault({});
  }
  Wait(100 + random_.Below(200), is_over);
}

}  // namespace siltfs::blocktest
