#include "index/flash/channel_order.h"

#include <algorithm>
#include <cassert>

namespace siltfs {

// The pass that takes a request is the number of earlier requests of its channel. The requests are
// then sorted by passes, by counting.
std::vector<uint32_t> SpreadOverChannels(std::span<const uint32_t> channel_of_request,
                                         uint32_t channels) {
  std::vector<uint32_t> depth(channels);
  std::vector<uint32_t> first_of_pass = {0};  // pass 0 takes the requests without a channel
  const auto count = [&](size_t pass) {
    if (first_of_pass.size() <= pass + 1) first_of_pass.resize(pass + 2);
    ++first_of_pass[pass + 1];
  };
  for (const uint32_t channel : channel_of_request) {
    assert(channel == kNoChannel || channel < channels);
    count(channel == kNoChannel ? 0 : ++depth[channel]);
  }
  for (size_t pass = 1; pass < first_of_pass.size(); ++pass) {
    first_of_pass[pass] += first_of_pass[pass - 1];
  }
  std::ranges::fill(depth, 0);
  std::vector<uint32_t> order(channel_of_request.size());
  for (uint32_t i = 0; i < channel_of_request.size(); ++i) {
    const uint32_t channel = channel_of_request[i];
    order[first_of_pass[channel == kNoChannel ? 0 : ++depth[channel]]++] = i;
  }
  return order;
}

}  // namespace siltfs
