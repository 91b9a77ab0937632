// The options of mkfs and tune that say which bucket has the segments of a store.
//
// Thread-safety: none. Errors: kInvalidArgument with one sentence for the user.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "fs/bucket/bucket_config.h"
#include "store/base/result.h"

namespace siltfs {

// The values on the command line.
struct BucketArguments {
  std::optional<std::string> bucket;
  std::optional<std::string> endpoint;
  std::optional<std::string> region;
  std::optional<std::string> credentials;
  std::optional<std::string> ca_file;
  std::optional<std::string> cache;
  std::optional<std::string> prices;

  bool empty() const {
    return !bucket && !endpoint && !region && !credentials && !ca_file && !cache && !prices;
  }
};

// Declares those that say how the service is reached. `arguments` must outlive `app`.
void AddServiceOptions(CLI::App& app, BucketArguments& arguments);
// Declares all options. `arguments` must outlive `app`.
void AddBucketOptions(CLI::App& app, BucketArguments& arguments);

// `before`, with the values that are given in the place of its own.
Result<BucketConfig> ApplyBucketOptions(const BucketArguments& arguments, BucketConfig before);

}  // namespace siltfs
