"""Phrases of narrated stops and requests: Vietnamese."""

from __future__ import annotations

from toolglot.reading.phrases.record import Phrases

_VERB = (
    r"(?:kiểm tra|xem|đọc|mở|tìm|chạy|thử|sửa|cập nhật|thay|đổi tên|thêm|xóa|xoá|tạo|viết (?:tệp|mã|bài|một|lại|hàm)"
    r"|cài|tải|phân tích|so sánh|tính|lấy|liệt kê|truy vấn|thực hiện|thực thi|áp dụng|triển khai|biên dịch|khởi động"
    r"|sao chép|di chuyển|lưu|gửi (?:yêu cầu|email|thư|tệp)|bắt đầu (?:bằng|với)|tiếp tục (?:với|sửa|kiểm)|xác minh"
    r"|xác nhận (?:lại|xem)|khắc phục|điều tra|khám phá|bật|tắt|rà soát|tra cứu|nhìn|gọi|dọn|cấu hình|tra|quét)"
)
_ADVERB = r"(?:bây giờ|ngay|trước tiên|trước hết|cũng|tiếp tục|bắt đầu|nhanh chóng|thử|lại|giúp bạn)"
PHRASES = Phrases(
    leads=(
        r"(?:bây giờ|trước tiên|trước hết|đầu tiên|tiếp theo|sau đó|rồi|được rồi|vâng|ok|và|nhưng|vậy|giờ|hãy)(?:,? )"
    ),
    joins=r"nên|vì vậy|do đó|và|nhưng|rồi",
    announcing=(
        rf"(?:(?:hãy )?để (?:tôi|mình) (?:{_ADVERB} ){{0,2}}{_VERB}(?!\w)"
        rf"|(?:tôi|mình|chúng ta) sẽ (?:{_ADVERB} ){{0,2}}{_VERB}(?!\w)"
        rf"|(?:bây giờ|tiếp theo|trước tiên),? (?:hãy|(?:tôi|mình)) (?:cùng |{_ADVERB} ){{0,2}}{_VERB}(?!\w)"
        r"|(?:tôi|mình) đang (?:chạy|kiểm tra|đọc|mở|tải|cập nhật|thực hiện|tạo|sửa lỗi)(?!\w))"
    ),
    before=(
        r"\b(?:nếu|khi|sau khi|ngay khi|chỉ cần|trừ khi|hãy (?!để)|vui lòng|xin|cho tôi|gửi|cung cấp|chia sẻ|chọn"
        r"|bạn (?:có thể|cần|nên|chỉ)|từ nay|từ giờ|lần sau|trong tương lai|ngày mai|ví dụ|giả sử|viết|nói|in ra"
        r"|là)\b"
    ),
    behind=(
        r"\b(?:nếu|khi (?:bạn|cần)|sau khi bạn|ngày mai|sau này|luôn|mỗi (?:khi|lần|ngày)|thường|ví dụ|giải thích"
        r"|tóm tắt"
        r"|lần sau|trong tương lai|xác nhận của bạn|cho bạn biết|đã|rồi)\b"
    ),
    addressing=r"\b(?:vui lòng|cho tôi biết|gửi cho tôi|hãy gửi|bạn có (?:muốn|thể)|xin|chọn)\b",
    waiting=r"(?:(?:vui lòng |xin )?(?:đợi|chờ)(?: tôi)?(?: một)? (?:chút|lát|giây|phút)(?: nhé)?)",
    asking=(
        r"(?:(?:hãy|vui lòng|làm ơn|giúp tôi|bây giờ|sau đó|rồi|và|vâng|được|xin chào|cảm ơn)\b,? ){0,4}"
        r"(?:(?:bạn )?(?:có thể|giúp tôi) |tôi (?:muốn|cần) bạn )?"
        rf"(?:{_VERB}|viết|gửi|đặt|làm đi|tiếp tục|hoàn thành|tối ưu|xử lý)(?!\w)"
    ),
    declining=(
        r"\b(?:giải thích|tại sao|vì sao|như thế nào|thế nào|là gì|kế hoạch|đề xuất|ý kiến|đừng|không (?:thay đổi"
        r"|chạy)"
        r"|tóm tắt|mô tả|thơ|câu chuyện|khác nhau|cho tôi biết)\b"
    ),
    polite=r"\b(?:có thể|giúp)\b",
    forbidding=r"\bđừng (?:thay|sửa|chạy|làm|đụng|xóa)\b",
    agreeing=r"vâng|có|được|ừ|đồng ý|ok",
)
