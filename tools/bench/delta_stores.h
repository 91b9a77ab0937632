// What deltas do to whole stores: the files of some paths are stored, recompressed and read again,
// in a store with deltas and in one without, step by step in turn. A part of `siltfs-bench delta`.
//
// Errors: throws BenchFailure, also if a byte that is read differs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace siltfs {

struct DeltaStoresArguments {
  std::vector<std::string> paths;  // files and directories, stored in this order
  unsigned rounds = 1;             // each makes two new stores; figures are medians
  bool cold = false;               // empties the page cache before each timed step (as root)
  std::string directory;           // as ScratchDirectory's parent
};

nlohmann::ordered_json MeasureDeltaStores(const DeltaStoresArguments& arguments);

}  // namespace siltfs
