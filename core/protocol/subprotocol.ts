/** Of the WebSocket; its pair in the request is `bearer.TOKEN`, where there is no cookie. */
export const SUBPROTOCOL = 'parley.v1';
