// Cross-origin answers for listed origins only. Without a list no header of CORS is ever sent, so that a foreign page
// can neither read an answer nor get a preflight through.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/gate.h"

namespace server {

class Cors {
  public:
    // `origins`: exact ("https://app.example", compared without case), or "*" for every one.
    explicit Cors(std::vector<std::string> origins);
    bool allows(std::string_view origin) const;
    // Headers for an answer to a request from `origin`; none when it isn't allowed. Also tells caches when answers vary.
    void add_headers(std::string_view origin, std::vector<std::pair<std::string, std::string>>& headers) const;
    // OPTIONS with Origin and Access-Control-Request-Method.
    static bool is_preflight(const Head& head);
    // 204 with what is allowed, or 403. Asks for no key: browsers send none with a preflight.
    HttpResponse preflight(const Head& head) const;

  private:
    std::vector<std::string> origins_;  // lower case
    bool all_ = false;
};

}  // namespace server
