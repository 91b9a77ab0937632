// The style sheet of a report: light and dark pages, phones and paper.
#pragma once

#include <string_view>

namespace siltfs::report {

extern const std::string_view kStyle;

}  // namespace siltfs::report
