#include "tools/siltfs/store_bucket_options.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "store/env/mountpoint.h"
#include "tools/siltfs/size_option.h"

namespace siltfs {
namespace {

constexpr std::string_view kDefaultPrices = "default";

// The file's path is kept in the store, so it must not depend on the directory of the command.
Result<std::string> FilePath(const std::string& path) {
  if (path.empty()) return path;
  return AbsolutePath(path);
}

Result<std::optional<BucketPrices>> PricesAfter(const std::string& text,
                                                const std::optional<BucketPrices>& before) {
  if (text == kDefaultPrices) return std::optional<BucketPrices>();
  SILTFS_ASSIGN_OR_RETURN(BucketPrices prices, ParsePrices(text, before.value_or(BucketPrices())));
  return std::optional<BucketPrices>(std::move(prices));
}

}  // namespace

void AddServiceOptions(CLI::App& app, BucketArguments& arguments) {
  app.add_option("--endpoint", arguments.endpoint, "The service of the bucket (Amazon S3)")
      ->type_name("URL");
  app.add_option("--bucket-region", arguments.region,
                 "The region of the bucket (AWS_REGION, or us-east-1)")
      ->type_name("REGION");
  app.add_option("--bucket-credentials", arguments.credentials,
                 "A file like ~/.aws/credentials that only its owner may read (the environment)")
      ->type_name("FILE");
  app.add_option("--bucket-ca", arguments.ca_file,
                 "Certificates to trust for https (those of the system)")
      ->type_name("FILE");
}

void AddBucketOptions(CLI::App& app, BucketArguments& arguments) {
  app.add_option("--bucket", arguments.bucket,
                 "Keep the segments in this bucket of an S3-compatible service; the prefix belongs "
                 "to this store alone")
      ->type_name("s3://NAME/PREFIX");
  AddServiceOptions(app, arguments);
  app.add_option("--cache", arguments.cache,
                 fmt::format("Most local bytes of segments that are in the bucket, or wait for it "
                             "({}G)",
                             kDefaultBucketCacheBytes >> 30))
      ->type_name("SIZE");
  app.add_option("--bucket-prices", arguments.prices,
                 "What the bucket costs, for estimates: put, get (1,000 requests), storage (GB and "
                 "month), egress (GB), currency; or default")
      ->type_name("NAME=PRICE,...");
}

Result<BucketConfig> ApplyBucketOptions(const BucketArguments& arguments, BucketConfig before) {
  if (arguments.bucket) before.address = *arguments.bucket;
  if (before.address.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "the options of a bucket need --bucket s3://NAME/PREFIX");
  }
  if (arguments.endpoint) before.endpoint = *arguments.endpoint;
  if (arguments.region) before.region = *arguments.region;
  if (arguments.credentials) {
    SILTFS_ASSIGN_OR_RETURN(before.credentials, FilePath(*arguments.credentials));
  }
  if (arguments.ca_file) {
    SILTFS_ASSIGN_OR_RETURN(before.ca_file, FilePath(*arguments.ca_file));
  }
  if (arguments.cache) {
    SILTFS_ASSIGN_OR_RETURN(before.cache_bytes, ParseSizeOption("--cache", *arguments.cache));
  }
  if (arguments.prices) {
    SILTFS_ASSIGN_OR_RETURN(before.prices, PricesAfter(*arguments.prices, before.prices));
  }
  SILTFS_RETURN_IF_ERROR(ValidateBucketConfig(before));
  return before;
}

}  // namespace siltfs
