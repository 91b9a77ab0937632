#include "tools/siltfs/output_file.h"

#include "store/env/mountpoint.h"

namespace siltfs {

Status CheckOutsideStore(const std::string& file, const std::string& store) {
  const size_t slash = file.rfind('/');
  const auto directory = AbsolutePath(slash == std::string::npos ? "." : file.substr(0, slash + 1));
  if (!directory.ok()) {
    directory.status().IgnoreError("the function that writes the file reports it");
    return Status::Ok();
  }
  if (!(*directory + "/").starts_with(store + "/")) return Status::Ok();
  return Status(StatusCode::kInvalidArgument,
                "is in the store's own directory; name a file elsewhere")
      .At(file);
}

}  // namespace siltfs
