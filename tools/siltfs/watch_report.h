// The output of `siltfs stat --watch`: what a store has done between two readings of its counters.
//
// Thread-safety: pure functions, safe to call from any thread; a WatchView belongs to one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "fs/interface/activity.h"
#include "store/env/terminal.h"

namespace siltfs {

// What happened in an interval. Rates are per second, of bytes or counts.
struct WatchInterval {
  double seconds = 0;
  double read_bytes = 0;
  double reads = 0;
  double written_bytes = 0;
  double writes = 0;
  double put_bytes = 0;
  double added_bytes = 0;
  std::optional<double> dedup_ratio;  // put / added; empty if no new chunk came
  // Shares from 0 to 1; empty if nothing was asked.
  std::optional<double> block_hits;       // blocks that were found in the cache
  std::optional<double> names_in_memory;  // put chunks that were found without the index
  double index_lookups = 0;
  double index_flash_reads = 0;
  double index_bytes_written = 0;
  uint64_t merges = 0;  // counts of the interval
  uint64_t conversions = 0;
  double recompressed_bytes = 0;
  double collected_bytes = 0;
  double scrubbed_bytes = 0;
  StoreActivityReport now;  // the counters at the end of the interval
};

WatchInterval Between(const StoreActivityReport& before, const StoreActivityReport& after);

// One document. `time`: seconds since 1970, at the end of the interval.
nlohmann::json WatchToJson(const WatchInterval& interval, double time);

// A line of a table, and the line of its titles. Both end in a newline. `clock` is a time such as
// "12:00:00".
std::string WatchTitles();
std::string WatchLine(const WatchInterval& interval, const std::string& clock);

// The picture on a terminal, which shows the last interval and the course of those before.
class WatchView {
 public:
  WatchView(std::string store, std::string mountpoint, uint64_t interval_milliseconds);

  void Add(const WatchInterval& interval);
  // Returns the lines, which end in newlines and fit the width. Call it after Add.
  std::string Draw(const std::string& clock, const TextStyle& style) const;

 private:
  std::string Course(const std::deque<double>& rates, const TextStyle& style) const;

  const std::string store_;
  const std::string mountpoint_;
  const uint64_t interval_milliseconds_;
  WatchInterval last_;
  std::deque<double> reads_;  // bytes per second, the newest last
  std::deque<double> writes_;
  double put_ = 0;  // bytes since the view began
  double added_ = 0;
};

}  // namespace siltfs
