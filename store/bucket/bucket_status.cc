#include "store/bucket/bucket_status.h"

#include <fmt/format.h>

#include "store/base/size_text.h"

namespace siltfs {

std::string DescribeUploads(const UploadStatus& uploads) {
  if (uploads.waiting == 0) return {};
  std::string text =
      fmt::format("{} segment{} ({}) wait{} for upload, the oldest for {} s", uploads.waiting,
                  uploads.waiting == 1 ? "" : "s", FormatSize(uploads.waiting_bytes),
                  uploads.waiting == 1 ? "s" : "", uploads.behind_seconds);
  if (!uploads.last_error.empty()) text += "; last error: " + uploads.last_error;
  return text;
}

}  // namespace siltfs
