// The clipboard's own interface exists only on HTTPS and loopback; a page served plainly on a local network has the
// older way.
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'off-screen';
    const focused = document.activeElement;
    (focused?.closest('dialog') ?? document.body).append(area);
    area.select();
    let copied = false;
    try {
      copied = document.execCommand('copy');
    } catch {
      // Refused.
    }
    area.remove();
    if (focused instanceof HTMLElement) focused.focus();
    return copied;
  }
}
