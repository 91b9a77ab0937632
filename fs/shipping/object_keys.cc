#include "fs/shipping/object_keys.h"

namespace siltfs {

Status ForEachObject(ObjectStore& objects, const std::string& prefix,
                     const std::function<Status(const ObjectInfo&)>& visit) {
  constexpr size_t kPageSize = 1000;
  std::string after;
  for (ObjectPage page{.objects = {}, .more = true}; page.more;) {
    auto listed = objects.List(prefix, after, kPageSize);
    if (!listed.ok()) return std::move(listed).status();
    page = std::move(listed).value();
    if (page.objects.empty()) break;
    after = page.objects.back().key;
    for (const ObjectInfo& info : page.objects) {
      Status visited = visit(info);
      if (!visited.ok()) return visited;
    }
  }
  return Status::Ok();
}

}  // namespace siltfs
