#include "fs/bucket/bucket_findings.h"

#include <algorithm>
#include <utility>

namespace siltfs {
namespace {

constexpr size_t kMostListed = 10'000;

}  // namespace

void BucketFindings::Add(std::string_view code, std::string key, std::string message) {
  MutexLock lock(mutex_);
  const bool leftover = code == kLeftoverObject;
  ++(leftover ? leftover_objects_ : errors_);
  std::vector<BucketFinding>& list = leftover ? leftovers_ : findings_;
  if (list.size() < kMostListed) list.push_back({code, std::move(key), std::move(message)});
}

Status BucketFindings::Note(const Status& status, const std::string& key) {
  if (status.Is(StatusCode::kNotFound)) {
    Add("missing-object", key, "the object is missing");
  } else if (status.Is(StatusCode::kCorruption) || status.Is(StatusCode::kFileTooLarge)) {
    Add("damaged-object", key, std::string(status.cause()));
  } else {
    return status;
  }
  return Status::Ok();
}

void BucketFindings::TakeInto(BucketVerifyReport& report) {
  const auto by_key = [](const BucketFinding& a, const BucketFinding& b) { return a.key < b.key; };
  MutexLock lock(mutex_);
  std::ranges::stable_sort(findings_, by_key);
  std::ranges::stable_sort(leftovers_, by_key);
  report.findings = std::move(findings_);
  report.leftovers = std::move(leftovers_);
  report.errors = errors_;
  report.leftover_objects = leftover_objects_;
}

}  // namespace siltfs
